/** The service under the rights of deploy/postgres/points-role.sql. */
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { openDb, transaction } from "@todoke/kernel/db";
import { removeFinished, retentionOf } from "@todoke/kernel/retention";
import { expect, test } from "vitest";
import { postExpirations } from "../commands/post-changes.ts";
import { runDueSchedule } from "../commands/run-due-schedule.ts";
import { inSeconds, rethrow, setup as setupService } from "../testing.ts";
import { insertSchedule, insertScheduleUsers } from "./change-schedules.ts";

const grants = readFileSync(new URL("../../../deploy/postgres/points-role.sql", import.meta.url), "utf8");

/** Roles are shared by the whole server, so each test has its own. */
async function setup() {
  const t = await setupService();
  const [role, password] = [`points_${randomBytes(8).toString("hex")}`, randomBytes(16).toString("hex")];
  await t.db.query(`create role ${role} login password '${password}'`);
  await t.db.query(grants.replaceAll("todoke_points", role));
  await t.db.query(grants.replaceAll("todoke_points", role)); // The grants can be applied again.
  const url = Object.assign(new URL(t.url), { username: role, password });
  const db = openDb({ url: url.href, schema: "points" });
  return {
    ...t,
    db,
    ...t.process(db),
    async [Symbol.asyncDispose]() {
      await db.end();
      await t.db.query(`drop owned by ${role}; drop role ${role}`);
      await t[Symbol.asyncDispose]();
    },
  };
}

test("the database role of the service can do everything that the service does", async () => {
  await using t = await setup();
  await t.add("u_1", 50n, { expiresAt: inSeconds(600) });
  await t.add("u_1", 100n);
  const spent = (await t.sub("u_1", 20n)).json;
  await t.refund(String(spent.transaction_id), 5n);
  const held = [(await t.hold("u_1", 10n)).json, (await t.hold("u_1", 10n)).json];
  await t.capture(String(held[0]?.hold_id), 4n);
  await t.release(String(held[1]?.hold_id));
  await t.age("1 hour");
  expect(await transaction(t.db, (tx) => postExpirations(tx, ["u_1"]))).toBe(1);
  await t.cancel((await t.reserve({ user: "u_1", at: "2999-01-01T00:00:00Z" })).id);
  await t.reserve({ user: "u_1", amount: 7n });
  const scheduleId = randomUUID();
  const recurring = { scheduleId, name: "leap days", cron: "0 0 29 2 *", timeZone: "UTC", amount: 3n };
  await insertSchedule(t.db, { ...recurring, catchUp: "latest", nextRunAt: "2020-01-01T00:00:00Z" });
  await insertScheduleUsers(t.db, scheduleId, ["u_1"]);
  expect(await runDueSchedule(t.db, { onError: rethrow })).toBe(true);
  expect(await t.scheduler().runOnce()).toBe(2);
  expect(await t.work(await t.dueEvents())).toEqual(["done", "done"]);
  expect(await t.statuses()).toEqual({ CANCELLED: 1, DONE: 2 });
  expect(await t.balanceOf("u_1")).toBe(110n);
  for (const policy of [retentionOf.publishedEvents(), retentionOf.idempotencyKeys(), retentionOf.processedEvents()])
    expect(await removeFinished(t.db, policy)).toBe(0);
  expect(await t.audit()).toEqual([]);
});

test("the database role cannot change transactions, drop the trigger or migrate", async () => {
  await using t = await setup();
  await t.add("u_1", 100n);
  for (const forbidden of [
    "update point_transactions set reason = 'another'",
    "delete from point_transactions",
    "truncate point_transactions",
    "alter table point_transactions disable trigger all",
    "drop trigger point_transactions_are_append_only on point_transactions",
    "drop table point_transactions",
    "set session_replication_role = replica",
    "update schema_migrations set version = version",
    "create table another (id int)",
  ]) {
    await expect(t.db.query(forbidden), forbidden).rejects.toMatchObject({ code: "42501" }); // insufficient_privilege
  }
  expect(await t.balanceOf("u_1")).toBe(100n);
});
