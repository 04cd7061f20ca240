import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { selectBalance } from "../store/balances.ts";
import { inSeconds, rethrow as onError, setup } from "../testing.ts";
import { startExpiry } from "./expiry.ts";

test("two processes post each expired lot once and emit one event for it", async () => {
  await using t = await setup();
  const users = Array.from({ length: 120 }, (_, i) => `u_${i}`);
  await Promise.all(users.map((user) => t.add(user, 5n, { expiresAt: inSeconds(600) })));
  await Promise.all(users.map((user) => t.add(user, 2n)));
  await t.sub("u_0", 1n);
  await t.age("1 hour");
  let wakeups = 0;
  const options = { everyMs: 10, onCommitted: () => void wakeups++, onError };
  await using _first = startExpiry(t.db, options);
  await using _second = startExpiry(t.open(), options);
  await until(
    "all are posted",
    async () => (await t.rows(`select from point_lots where is_open and expires_at < now()`)).length === 0,
  );
  const expirations = await t.rows(
    `select count(*)::int as n, sum(moved)::int as points, bool_and(effective_at < created_at) as late
       from point_transactions where kind = 'EXPIRE'`,
  );
  expect(expirations).toEqual([{ n: 120, points: 599, late: true }]);
  expect((await t.rows(`select from outbox_events where event_type = 'PointsExpired'`)).length).toBe(120);
  expect(wakeups).toBeGreaterThan(0);
  expect(await t.audit()).toEqual([]);
});

test("an expired hold returns its points, which expire at once if their lot has", async () => {
  await using t = await setup();
  await t.add("u", 5n, { expiresAt: inSeconds(600) });
  await t.add("u", 10n);
  const { hold_id } = (await t.hold("u", 8n, 900)).json;
  await t.age("1 hour");
  expect(await selectBalance(t.db, "u")).toMatchObject({ balance: 10n, held: 0n });
  await using _ = startExpiry(t.db, { intervalMs: 10, onCommitted: () => {}, onError });
  await until(
    "the hold is expired",
    async () => (await t.rows(`select from point_holds where status = 'EXPIRED'`)).length === 1,
  );
  expect(
    await t.rows(
      `select kind, moved, refers_to = $1 as its from point_transactions where version > 3 order by version`,
      [hold_id],
    ),
  ).toEqual([
    { kind: "RELEASE", moved: 8n, its: true },
    { kind: "EXPIRE", moved: 5n, its: false },
  ]);
  expect(await selectBalance(t.db, "u")).toMatchObject({ balance: 10n, held: 0n });
  expect(await t.audit()).toEqual([]);
});

test("expired points are never spent: a spend posts the expiry first", async () => {
  await using t = await setup();
  await t.add("u", 5n, { expiresAt: inSeconds(600) });
  await t.add("u", 3n);
  await t.age("1 hour");
  await expect(t.sub("u", 4n)).rejects.toMatchObject({ code: "insufficient-points" });
  expect((await t.sub("u", 3n)).json.balance).toBe("0");
  expect(await t.audit()).toEqual([]);
});

test("a refund to an expired lot is posted, and its expiry right after it", async () => {
  await using t = await setup();
  await t.add("u", 5n, { expiresAt: inSeconds(600) });
  const { transaction_id = "" } = (await t.sub("u", 5n)).json;
  await t.age("1 hour");
  expect((await t.refund(transaction_id)).json).toMatchObject({ kind: "REFUND", point_amount: "5", balance: "0" });
  expect(await t.rows(`select kind from point_transactions order by version`)).toEqual(
    ["ADD", "SUB", "REFUND", "EXPIRE"].map((kind) => ({ kind })),
  );
  await expect(t.refund(transaction_id)).rejects.toMatchObject({ code: "refund-too-large" });
  expect(await t.audit()).toEqual([]);
});

test("a user whose expiry fails is reported and does not block the others", async () => {
  await using t = await setup();
  for (const user of ["broken", "u_1", "u_2"]) await t.add(user, 5n, { expiresAt: inSeconds(600) });
  await t.age("1 hour");
  await t.db.query(`update point_root set balance = 0 where user_id = 'broken'`);
  const errors: unknown[] = [];
  await using _ = startExpiry(t.db, { intervalMs: 10, onCommitted: () => {}, onError: (error) => errors.push(error) });
  await until(
    "the others are posted",
    async () => (await t.rows(`select from point_transactions where kind = 'EXPIRE'`)).length === 2,
  );
  await until("the error is reported", async () => errors.some((error) => String(error).includes("broken")));
});
