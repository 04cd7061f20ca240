import { decodeEvent, encodeEvent } from "@todoke/contracts";
import type { Db } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { until } from "@todoke/kernel/testing";
import type { Wakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { endSuspensions } from "../commands/end-suspensions.ts";
import { adminSubject, consistent, setup } from "../testing.ts";
import { startExpiry } from "./expiry.ts";

const outbox = openOutbox();

async function suspended() {
  const t = await setup();
  const process = await t.process();
  const [aki, admin] = [await process.person("aki"), await process.person(adminSubject)];
  const suspend = (more: object) =>
    process.act(admin, `/admin/users/${aki.user_id}:suspend`, { reason: "cheating", ...more });
  await suspend({ until: "2999-01-01T00:00:00Z" });
  return { ...t, ...process, aki, admin, suspend };
}

/** Moves the end of every suspension to an hour ago. */
const passTime = (db: Db) =>
  db.query(`update users set suspended_until = now() - interval '1 hour' where suspended_until is not null`);

test("every read shows an ended suspension as over, even before the expiry worker runs", async () => {
  await using t = await suspended();
  await passTime(t.db);
  const reads = async () => [
    await t.read(t.aki),
    (await t.resolve("aki")).json(),
    (await t.call("GET", `/admin/users?user_id=${t.aki.user_id}`, { as: t.admin })).json().users[0],
    (await t.call("GET", `/users/${t.aki.user_id}/export`, { as: t.aki })).json().user,
  ];
  for (const user of await reads()) {
    expect(user).toMatchObject({ status: "ACTIVE", version: 2 });
    expect(Object.keys(user).join()).not.toMatch(/suspended/);
  }
  expect((await t.patch(t.aki, { ...t.aki, version: 2 }, { display_name: "Aki" })).statusCode).toBe(200);
  await endSuspensions(t.db, outbox, 10); // the profile change in between did not end it silently
  for (const user of await reads()) expect(user).toMatchObject({ status: "ACTIVE", display_name: "Aki", version: 4 });
  expect(await t.violations()).toEqual(consistent);
});

test("an ended suspension emits one event that fits the contract and writes an audit row", async () => {
  await using t = await suspended();
  await passTime(t.db);
  expect([await endSuspensions(t.db, outbox, 10), await endSuspensions(t.db, outbox, 10)]).toEqual([1, 0]);
  const [row] = await t.rows(`select * from outbox_events where event_type = 'AccountReinstated'`);
  expect(row).toMatchObject({ aggregate_key: t.aki.user_id, subject: "account.events", version: 3n });
  const event = decodeEvent("AccountReinstated", encodeEvent("AccountReinstated", row.payload));
  const user = { userId: t.aki.user_id, status: "ACTIVE", roles: "USER", version: 3n };
  expect(event).toMatchObject({ ...user, reason: "the time of the suspension was up" });
  const [audit] = await t.rows(`select actor, before, after from audit_logs where action = 'REINSTATE'`);
  expect(audit).toEqual({
    actor: "todoke:expiry",
    before: {
      status: "SUSPENDED",
      suspended_reason: "cheating",
      suspended_until: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    },
    after: { status: "ACTIVE" },
  });
  expect(await t.violations()).toEqual(consistent);
});

test("a suspension that is prolonged, or has no end, is not ended", async () => {
  await using t = await suspended();
  await passTime(t.db);
  const prolonging = await t.db.connect();
  await prolonging.query(
    `begin; update users set suspended_until = now() + interval '1 day' where status = 'SUSPENDED'`,
  );
  expect(await endSuspensions(t.db, outbox, 10)).toBe(0); // without waiting for the lock
  await prolonging.query("commit");
  prolonging.release();
  expect(await endSuspensions(t.db, outbox, 10)).toBe(0);
  await t.suspend({});
  await passTime(t.db);
  expect(await endSuspensions(t.db, outbox, 10)).toBe(0);
  expect(await t.read(t.aki)).toMatchObject({ status: "SUSPENDED", version: 3 });
});

test("four processes end 500 suspensions, each with one event", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into users (user_id, status, suspended_reason, suspended_until)
     select 'u_' || i, 'SUSPENDED', 'r', now() - i * interval '1 second' from generate_series(1, 500) i`,
  );
  let batches = 0;
  const wakeups = { signal: () => void batches++ } as Partial<Wakeups> as Wakeups;
  const options = { outbox: openOutbox({ wakeups, topic: "outbox" }), intervalMs: 5, onError: () => {} };
  const processes = Array.from({ length: 4 }, () => startExpiry({ db: t.open({ poolMax: 1 }), ...options }));
  await until("all suspensions have ended", async () => (await t.counts()).events >= 500);
  for (const each of processes) await each[Symbol.asyncDispose]();
  const rows = await t.rows(`select status, version::int, count(*)::int from users group by 1, 2`);
  expect(rows).toEqual([{ status: "ACTIVE", version: 2, count: 500 }]);
  expect(await t.counts()).toMatchObject({ events: 500, audit: 500 });
  expect(batches).toBeGreaterThanOrEqual(3);
});

test("the search for ended suspensions is an index scan", async () => {
  await using t = await setup();
  const rows = await t.rows(
    `explain select user_id from users where status = 'SUSPENDED' and suspended_until <= now() order by suspended_until limit 9 for update skip locked`,
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toMatch(/Index Scan using users_running_out/);
  expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
});
