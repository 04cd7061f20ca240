import { decodeEvent, encodeEvent } from "@todoke/contracts";
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { keepEndingSuspensions } from "./expiry.ts";
import { endSuspensions } from "./store/end-suspensions.ts";
import { adminSubject, intact, setup } from "./testing.ts";

async function suspended() {
  const t = await setup();
  const process = await t.process();
  const [aki, admin] = [await process.person("aki"), await process.person(adminSubject)];
  const suspend = (more: object) =>
    process.act(admin, `/admin/users/${aki.user_id}:suspend`, { reason: "cheating", ...more });
  await suspend({ until: "2999-01-01T00:00:00Z" });
  return { ...t, ...process, aki, admin, suspend };
}

/** Time passes: what would end in 2999 has ended an hour ago. */
const passTime = (db: Db) =>
  db.query(`update users set suspended_until = now() - interval '1 hour' where suspended_until is not null`);

test("from its end on a suspension reads as over, at once and everywhere, whether or not that was told", async () => {
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
  await endSuspensions(t.db, 10); // the change in between has not swallowed it
  for (const user of await reads()) expect(user).toMatchObject({ status: "ACTIVE", display_name: "Aki", version: 4 });
  expect(await t.broken()).toEqual(intact);
});

test("its end is told once, by an event that fits the contract, and is in the audit", async () => {
  await using t = await suspended();
  await passTime(t.db);
  expect([await endSuspensions(t.db, 10), await endSuspensions(t.db, 10)]).toEqual([1, 0]);
  const [row] = await t.rows(`select * from outbox_events where event_type = 'AccountReinstated'`);
  expect(row).toMatchObject({ aggregate_key: t.aki.user_id, subject: "account.events", version: 3n });
  const event = decodeEvent("AccountReinstated", encodeEvent("AccountReinstated", row.payload));
  const told = { userId: t.aki.user_id, status: "ACTIVE", roles: "USER", version: 3n };
  expect(event).toMatchObject({ ...told, reason: "the time of the suspension was up" });
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
  expect(await t.broken()).toEqual(intact);
});

test("a suspension without an end does not end, and one that is prolonged before its end is told goes on", async () => {
  await using t = await suspended();
  await passTime(t.db);
  const prolonging = await t.db.connect();
  await prolonging.query(
    `begin; update users set suspended_until = now() + interval '1 day' where status = 'SUSPENDED'`,
  );
  expect(await endSuspensions(t.db, 10)).toBe(0); // and does not wait for it
  await prolonging.query("commit");
  prolonging.release();
  expect(await endSuspensions(t.db, 10)).toBe(0);
  await t.suspend({});
  await passTime(t.db);
  expect(await endSuspensions(t.db, 10)).toBe(0);
  expect(await t.read(t.aki)).toMatchObject({ status: "SUSPENDED", version: 3 });
});

test("500 that run out, at four processes: each is told once, batch after batch", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into users (user_id, status, suspended_reason, suspended_until)
     select 'u_' || i, 'SUSPENDED', 'r', now() - i * interval '1 second' from generate_series(1, 500) i`,
  );
  let woken = 0;
  const options = { everyMs: 5, onCommitted: () => void woken++, onError: () => {} };
  const processes = Array.from({ length: 4 }, () => keepEndingSuspensions(t.open({ poolMax: 1 }), options));
  await until("all are told", async () => (await t.counts()).events >= 500);
  for (const each of processes) await each[Symbol.asyncDispose]();
  const rows = await t.rows(`select status, version::int, count(*)::int from users group by 1, 2`);
  expect(rows).toEqual([{ status: "ACTIVE", version: 2, count: 500 }]);
  expect(await t.counts()).toMatchObject({ events: 500, audit: 500 });
  expect(woken).toBeGreaterThanOrEqual(3);
});

test("the search for what has run out is an index probe", async () => {
  await using t = await setup();
  const rows = await t.rows(
    `explain select user_id from users where status = 'SUSPENDED' and suspended_until <= now() order by suspended_until limit 9 for update skip locked`,
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toMatch(/Index Scan using users_running_out/);
  expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
});
