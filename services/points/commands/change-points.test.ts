import { randomUUID } from "node:crypto";
import { encodeEvent } from "@todoke/contracts";
import { CommitUnknown } from "@todoke/kernel/db";
import { openWire } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { inSeconds, setup } from "../testing.ts";

const settled = async (work: readonly Promise<unknown>[]) => {
  const results = await Promise.allSettled(work);
  const refusals = results.flatMap((each) => (each.status === "rejected" ? [each.reason.code ?? each.reason] : []));
  return { done: results.length - refusals.length, refusals };
};

test("every kind of change returns the balance after it", async () => {
  await using t = await setup();
  expect((await t.add("u", 100n)).json).toMatchObject({
    kind: "ADD",
    point_amount: "100",
    balance: "100",
    version: "1",
  });
  const spent = await t.sub("u", 30n);
  expect(spent.json).toMatchObject({ kind: "SUB", point_amount: "-30", balance: "70" });
  const { hold_id = "", ...held } = (await t.hold("u", 50n)).json;
  expect(held).toMatchObject({ kind: "HOLD", point_amount: "-50", balance: "20", held: "50", status: "HELD" });
  expect((await t.capture(hold_id, 35n)).json).toMatchObject({
    ...{ kind: "CAPTURE", point_amount: "0", moved: "35", balance: "35", held: "0" },
    ...{ status: "CAPTURED", amount: "50", captured: "35", released: "15" },
  });
  await expect(t.release(hold_id)).rejects.toMatchObject({ code: "hold-ended", status: 409 });
  const { transaction_id = "" } = spent.json;
  expect((await t.refund(transaction_id, 10n)).json).toMatchObject({
    kind: "REFUND",
    point_amount: "10",
    balance: "45",
  });
  await expect(t.refund(transaction_id, 21n)).rejects.toMatchObject({ code: "refund-too-large" });
  expect((await t.refund(transaction_id)).json).toMatchObject({ point_amount: "20", balance: "65" });
  await expect(t.refund(transaction_id)).rejects.toMatchObject({ code: "refund-too-large" });
  const second = await t.hold("u", 65n);
  expect((await t.release(second.json.hold_id ?? "")).json).toMatchObject({ balance: "65", status: "RELEASED" });
  expect(await t.audit()).toEqual([]);
});

test("a refused change stores nothing", async () => {
  await using t = await setup();
  await expect(t.sub("unknown", 1n)).rejects.toMatchObject({ code: "insufficient-points" });
  await expect(t.hold("unknown", 1n)).rejects.toMatchObject({ code: "insufficient-points" });
  await expect(t.capture(randomUUID())).rejects.toMatchObject({ code: "hold-not-found", status: 404 });
  await expect(t.refund(randomUUID())).rejects.toMatchObject({ code: "transaction-not-found", status: 404 });
  await expect(t.add("unknown", 1n, { expiresAt: inSeconds(-60) })).rejects.toMatchObject({
    code: "lot-end-in-the-past",
  });
  const added = await t.add("u", 5n);
  await expect(t.refund(added.json.transaction_id ?? "")).rejects.toMatchObject({ code: "not-refundable" });
  const { hold_id = "" } = (await t.hold("u", 5n)).json;
  await expect(t.capture(hold_id, 6n)).rejects.toMatchObject({ code: "capture-too-large" });
  expect(await t.rows(`select count(*)::int as n from point_transactions`)).toEqual([{ n: 2 }]);
  expect(await t.rows(`select count(*)::int as n from idempotency_keys`)).toEqual([{ n: 2 }]);
});

test("amounts up to 2^63 - 1 are exact, and one point more is refused", async () => {
  await using t = await setup();
  const answer = await t.add("u", 9_223_372_036_854_775_807n);
  expect(answer.body.toString()).toContain('"balance":9223372036854775807');
  await expect(t.add("u", 1n)).rejects.toMatchObject({ code: "balance-overflow" });
  expect((await t.sub("u", 9_007_199_254_740_993n)).json.balance).toBe("9214364837600034814");
});

test("of 64 concurrent spends in two processes, only as many succeed as the balance allows", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process()];
  await t.add("u", 25n, { expiresAt: inSeconds(600) });
  await t.add("u", 15n);
  const { done, refusals } = await settled(
    Array.from({ length: 64 }, (_, i) => processes[i % 2]?.sub("u", 1n) as never),
  );
  expect(done).toBe(40);
  expect(new Set(refusals)).toEqual(new Set(["insufficient-points"]));
  expect(await t.rows(`select balance, version from point_root`)).toEqual([{ balance: 0n, version: 42n }]);
  expect(await t.audit()).toEqual([]);
});

test("32 concurrent requests with one key have one effect and the same response", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process()];
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, i) => processes[i % 2]?.add("u", 7n, { key: "once" }) as ReturnType<typeof t.add>),
  );
  expect(new Set(answers.map((answer) => `${answer.status} ${answer.body}`)).size).toBe(1);
  expect(answers.filter((answer) => !answer.replayed).length).toBe(1);
  await expect(t.add("u", 8n, { key: "once" })).rejects.toMatchObject({ code: "idempotency-conflict" });
  // Different users share no lock, so the unique key decides.
  const elsewhere = await settled(["v", "w"].map((user, i) => processes[i]?.add(user, 1n, { key: "other" }) as never));
  expect(elsewhere).toEqual({ done: 1, refusals: ["idempotency-conflict"] });
  expect(await t.rows(`select sum(balance)::int as points from point_root`)).toEqual([{ points: 8 }]);
});

test("a key takes effect once, also after its response is deleted by retention", async () => {
  await using t = await setup();
  const { json } = await t.add("u", 7n, { key: "once" });
  await t.db.query(`update idempotency_keys set expires_at = now() - interval '1 second'`);
  const again = t.add("u", 7n, { key: "once" });
  await expect(again).rejects.toMatchObject({
    code: "idempotency-conflict",
    message: expect.stringContaining(json.transaction_id ?? ""),
  });
  expect(await t.rows(`select balance from point_root`)).toEqual([{ balance: 7n }]);
});

test("thousands of changes of one user share commits, and all take effect", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process()];
  await t.add("hot", 10n);
  const changes = Array.from({ length: 3_000 }, (_, i) => {
    const process = processes[i % 2] as ReturnType<typeof t.process>;
    return i % 3 === 2 ? process.sub("hot", 2n) : process.add("hot", 1n);
  });
  const { done, refusals } = await settled(changes);
  const [row] = await t.rows(
    `select balance, version, (select count(distinct xmin::text)::int from point_transactions) as commits from point_root`,
  );
  expect(done + refusals.length).toBe(3_000);
  expect(new Set(refusals)).toEqual(new Set(refusals.length > 0 ? ["insufficient-points"] : []));
  expect(row.balance).toBe(10n + 2_000n - 2n * BigInt(1_000 - refusals.length));
  expect(row.version).toBe(BigInt(done + 1));
  expect(row.commits).toBeLessThan(300);
  expect(await t.audit()).toEqual([]);
});

test.each(["request", "answer"] as const)(
  "when the %s of COMMIT is lost, the batch fails as unknown and retries take effect once",
  async (lost) => {
    await using t = await setup();
    await using wire = await openWire(t.url);
    const through = t.process(t.open({ url: wire.url }));
    await through.add("u", 100n);
    wire.cutNext("commit", lost);
    const keys = Array.from({ length: 20 }, (_, i) => `spend-${i}`);
    const attempts = await Promise.allSettled(keys.map((key) => through.sub("u", 1n, key)));
    const unknown = attempts.filter((each) => each.status === "rejected" && each.reason instanceof CommitUnknown);
    expect(unknown.length).toBeGreaterThan(0);
    const retried = await Promise.all(keys.map((key) => through.sub("u", 1n, key)));
    expect(retried.filter((answer) => answer.replayed).length).toBe(lost === "answer" ? 20 : 20 - unknown.length);
    expect(await t.rows(`select balance, version from point_root`)).toEqual([{ balance: 80n, version: 21n }]);
    expect(await t.audit()).toEqual([]);
  },
);

test("the audit finds nothing while three processes change the same users", async () => {
  await using t = await setup();
  const processes = [t.process(), t.process(), t.process()];
  const users = Array.from({ length: 13 }, (_, i) => `u_${i}`);
  let running = true;
  let snapshots = 0;
  const auditor = (async () => {
    for (; running; snapshots++) expect(await t.audit()).toEqual([]);
  })().finally(() => (running = false));
  const round = () =>
    Array.from({ length: 1_200 }, async (_, i) => {
      const on = processes[i % 3] as ReturnType<typeof t.process>;
      const user = users[(i * 7) % users.length] as string;
      if (i % 4 < 2) return on.add(user, 5n, i % 8 === 0 ? { expiresAt: inSeconds(1) } : {});
      if (i % 4 === 2) return on.refund((await on.sub(user, 3n)).json.transaction_id ?? "", 2n);
      // Some expire after a second, the others not during the test.
      const { hold_id = "" } = (await on.hold(user, 4n, i % 3 === 0 ? 1 : 900)).json;
      return i % 5 === 0 ? on.capture(hold_id, 1n) : on.release(hold_id);
    });
  const refusals: unknown[] = [];
  // Again if the auditor is too slow to have seen three snapshots.
  do refusals.push(...(await settled(round())).refusals);
  while (running && snapshots < 3);
  running = false;
  await auditor;
  const kinds = (await t.rows(`select distinct kind from point_transactions`)).map(({ kind }) => kind);
  expect(kinds).toEqual(expect.arrayContaining(["ADD", "SUB", "REFUND", "HOLD", "CAPTURE", "RELEASE"]));
  // On a slow machine more holds and lots have expired by then.
  const expected = new Set(["insufficient-points", "hold-ended", "lot-end-in-the-past"]);
  expect(new Set(refusals).difference(expected)).toEqual(new Set());
});

test("transactions cannot be changed or deleted, not even by the owner of the table", async () => {
  await using t = await setup();
  await t.add("u", 1n);
  for (const statement of [
    `update point_transactions set reason = 'other'`,
    `delete from point_transactions`,
    `truncate point_transactions`,
  ])
    await expect(t.db.query(statement)).rejects.toThrow("point_transactions is append-only");
  await expect(
    t.db.query(`insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after,
      held_after, version, effective_at, created_at) values (gen_random_uuid(), 'k', 'u', 5, 'SUB', 5, 1, 0, 2, now(), now())`),
  ).rejects.toThrow("point_transaction_amount_is_what_moved");
});

test("every change of the balance emits a valid event, in the order of versions", async () => {
  await using t = await setup();
  const spent = await t.add("u", 9n, { expiresAt: inSeconds(600) }).then(() => t.sub("u", 4n));
  await t.refund(spent.json.transaction_id ?? "");
  await t.capture((await t.hold("u", 2n)).json.hold_id ?? "", 1n);
  const events = await t.rows(`select event_type, version, payload from outbox_events order by position`);
  expect(events.map((event) => [event.event_type, event.version, event.payload.point_amount])).toEqual([
    ["PointsGranted", 1n, "9"],
    ["PointsSpent", 2n, "4"],
    ["PointsGranted", 3n, "4"],
    ["PointsSpent", 6n, "1"], // After the release of the rest, so its balance is the user's.
  ]);
  expect(events.at(-1)?.payload.balance).toBe("8");
  for (const event of events) expect(encodeEvent(event.event_type, event.payload).length).toBeGreaterThan(0);
});
