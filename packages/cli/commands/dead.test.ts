import { hash } from "node:crypto";
import { userInfo } from "node:os";
import type { Db } from "@todoke/kernel/db";
import { fixedId, freePort, testDatabase, until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { openShell, runTodoke } from "../testing/command.ts";

/** A database with the schemas of all services, without running services. */
async function setup() {
  const t = await servicesDatabase();
  const keys = `shop=entitlements:write=${hash("sha256", "tdk_shop", "hex")}`;
  const full = { DATABASE_URL: t.url, TODOKE_API_KEYS: keys };
  const shell = openShell("todoke");
  const [entitlement, notification] = [t.open({ schema: "entitlement" }), t.open({ schema: "notification" })];
  return {
    entitlement,
    notification,
    full,
    shell,
    // The test shell splits at spaces, so an argument has _ instead of spaces.
    dead: (args: string) => runTodoke(`dead ${args}`, { DATABASE_URL: t.url }),
    async json(args: string) {
      const { code, out, err } = await runTodoke(`dead ${args} --json`, { DATABASE_URL: t.url });
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    },
    async [Symbol.asyncDispose]() {
      await shell[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** FAILED events 1 to `count`. Every third is a revoke, whose error has several lines and a colour code. */
const fail = (db: Db, count: number) =>
  db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
            case n % 3 when 0 then 'EntitlementRevoked' else 'EntitlementGranted' end,
            'entitlement.events', 'u_' || n || '/item1', 1, '{"user_id":"u_1"}', 'FAILED', 10,
            case n % 3 when 0 then E'no_answer\\nat \\x1b[31mline' else 'cannot_be_encoded' end
       from generate_series(1, $1) n order by n`,
    [count],
  );

const failNotification = (db: Db, n: number) =>
  db.query(
    `with failed as (
       insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at, status, attempt_count)
       values ($1, $2, 'u_1', 'EntitlementGranted', '{"en":"yes","ja":"はい"}', now(), 'FAILED', 10) returning *)
     insert into notification_dlq
       (notification_id, event_id, user_id, event_type, text, data, payload, attempt_count, last_error)
     select notification_id, event_id, user_id, event_type, text, '{"match_id":"m_1"}', '{"mode":"duel"}', attempt_count,
            'gone' from failed`,
    [fixedId(n), fixedId(1_000 + n)],
  );

const killEvent = (db: Db) =>
  db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, last_error)
     values ('notification', $1, 'EntitlementGranted', 'entitlement.events', 'u_1/item1', '', '{}', '\\xff', 'cannot be read')`,
    [fixedId(1)],
  );

const statuses = async (db: Db) =>
  (await db.query(`select status, count(*)::int from outbox_events group by 1 order by 1`)).rows.map(
    ({ status, count }) => `${count} ${status}`,
  );

const records = async (db: Db) =>
  (await db.query(`select of_table, of_key, redriven_by, reason from redrives order by redrive_id`)).rows;

test("dead letters are listed for all services and tables, in pages", async () => {
  await using t = await setup();
  expect(await t.dead("list")).toEqual({ code: 0, out: "There are no dead letters.\n", err: "" });
  await fail(t.entitlement, 3);
  await failNotification(t.notification, 1);
  await killEvent(t.notification);
  const { dead, next } = await t.json("list");
  expect(dead.map(({ service, table, id }: Record<string, string>) => [service, table, id])).toEqual([
    ["entitlement", "outbox_events", fixedId(1)],
    ["entitlement", "outbox_events", fixedId(2)],
    ["entitlement", "outbox_events", fixedId(3)],
    ["notification", "notifications", fixedId(1)],
    ["notification", "inbox_dlq", "1"],
  ]);
  expect(next).toEqual([]);

  const first = await t.dead("list entitlement --limit 2");
  expect(first.out).toMatch(/^entitlement outbox_events\n {2}id .* last error\n {2}0{8}-.*cannot_be_encoded\n/);
  expect(first.out).toContain("Next page: todoke dead list entitlement --table outbox_events --after 2\n");
  const second = await t.dead("list entitlement --limit 2 --table outbox_events --after 2");
  expect(second.out).toMatch(/no_answer at �\[31mline\n$/);
  expect(second.out).not.toContain("\u001b");
  expect((await t.json("list --type EntitlementRevoked")).dead).toMatchObject([{ id: fixedId(3) }]);
});

test("show finds a dead letter by its id, also after a redrive", async () => {
  await using t = await setup();
  await fail(t.entitlement, 1);
  await failNotification(t.notification, 2);
  await killEvent(t.notification);
  const { out } = await t.dead(`show entitlement ${fixedId(1)}`);
  expect(out).toContain('  payload         {\n                    "user_id": "u_1"\n');
  expect(out).toMatch(/last_error {6}cannot_be_encoded\n[\s\S]*Never redriven\.\n$/);
  expect(await t.json("show notification 1")).toMatchObject({ table: "inbox_dlq", payload_base64: "/w==" });

  await t.dead(`redrive notification ${fixedId(2)} --reason fixed --by aki`);
  const redriven = await t.dead(`show notification ${fixedId(2)}`);
  expect(redriven.out).toMatch(/status {10}PENDING\n/);
  expect(redriven.out).toMatch(/data {12}\{\s+"match_id": "m_1"\s+\}\n {2}payload {9}\{\s+"mode": "duel"\s+\}\n/);
  expect(redriven.out).toMatch(/Redriven, newest first:\n {2}\S+Z {3}aki: fixed \(after 10 attempts\)\n$/);
  expect(await t.dead(`show entitlement ${fixedId(7)}`)).toEqual({
    code: 1,
    out: "",
    err: `✗ entitlement has no dead letter ${fixedId(7)}. \`todoke dead list entitlement\` lists them.\n`,
  });
});

test("named ids are redriven once, with operator and reason; an unknown id changes nothing", async () => {
  await using t = await setup();
  await failNotification(t.notification, 1);
  await killEvent(t.notification);
  const slip = await t.dead(`redrive notification 1 ${fixedId(9)} --reason fixed`);
  expect(slip).toMatchObject({ code: 1, err: expect.stringContaining(`no dead letter ${fixedId(9)}`) });
  expect(await records(t.notification)).toEqual([]);

  const woken: string[] = [];
  await using wakeups = openWakeups({ url: t.full.DATABASE_URL });
  for (const topic of ["notification.notifications", "notification.inbox_dlq"])
    wakeups.on(topic, () => woken.push(topic));
  await wakeups.listening;
  woken.length = 0; // A new listener is woken once, for what it may have missed.
  const both = await t.dead(`redrive notification 1 ${fixedId(1)} --reason fixed`);
  expect(both).toMatchObject({ code: 0, out: expect.stringMatching(/\n2 dead letters redriven\.\n$/) });
  const by = { redriven_by: userInfo().username, reason: "fixed" };
  expect(await records(t.notification)).toEqual([
    { of_table: "notifications", of_key: fixedId(1), ...by },
    { of_table: "inbox_dlq", of_key: "1", ...by },
  ]);
  // It may be more than once: a reconnect wakes all topics.
  await until("the workers of both are woken", () => new Set(woken).size === 2);
  expect((await t.json("list")).dead).toEqual([]);
  const again = await t.dead("redrive notification 1 --reason fixed");
  expect(again.out).toBe("0 dead letters redriven.\nNo longer dead, and skipped: 1.\n");
  expect(await records(t.notification)).toHaveLength(2);
});

test("--all redrives all matching rows with --yes, across pages, and only prints them without it", async () => {
  await using t = await setup();
  await fail(t.entitlement, 1_002);
  const all = "redrive entitlement --all --type EntitlementGranted --error be_encoded";
  expect(await t.dead(all)).toEqual({
    code: 0,
    out: `  668   outbox_events   EntitlementGranted   cannot_be_encoded
668 dead letters of entitlement would be redriven.
Nothing was changed. Add --yes and --reason to redrive them.\n`,
    err: "",
  });
  expect(await statuses(t.entitlement)).toEqual(["1002 FAILED"]);
  expect((await t.json(`${all} --yes --reason deployed --by aki`)).redriven).toHaveLength(668);
  expect(await statuses(t.entitlement)).toEqual(["334 FAILED", "668 PENDING"]);
  expect(await records(t.entitlement)).toHaveLength(668);
  expect((await t.dead(all)).out).toBe("No dead letter matches the filters.\n");
});

test("discarded rows are gone, shown with who and why, and never sent; --user finds them in every table", async () => {
  await using t = await setup();
  await fail(t.entitlement, 2);
  await failNotification(t.notification, 1);
  const found = await t.json("list --user u_1");
  expect(found.dead.map(({ id }: { id: string }) => id)).toEqual([fixedId(1), fixedId(2), fixedId(1)]);
  expect((await t.json("list --user u_2")).dead).toEqual([]);
  const preview = await t.dead("discard entitlement --all --user u_1");
  expect(preview.out).toMatch(/2 dead letters of entitlement would be discarded\.\nNothing was changed\./);
  const gone = await t.dead(`discard notification ${fixedId(1)} --reason spam --by aki`);
  expect(gone).toMatchObject({ code: 0, out: expect.stringMatching(/\n1 dead letter discarded\.\n$/) });
  const left = await t.notification.query(
    `select notification_id from notifications union all select notification_id from notification_dlq`,
  );
  expect(left.rows).toEqual([]);
  const shown = await t.dead(`show notification ${fixedId(1)}`);
  expect(shown.out).toMatch(/^notification notifications, discarded\n[\s\S]*discarded_by +aki\n[\s\S]*reason +spam\n/);
  expect(shown.out).toMatch(/"text": \{[\s\S]*Never redriven\.\n$/);
  const all = await t.json("discard entitlement --all --user u_1 --yes --reason test");
  expect(all.discarded).toHaveLength(2);
  expect((await t.json("list")).dead).toEqual([]);
});

test("a running service processes redriven rows", async () => {
  await using t = await setup();
  const env = { ...t.full, NOTIFICATION_PORT: String(await freePort()) };
  const serving = t.shell.start("serve notification", env);
  await serving.untilPrinted("notification   http");
  await failNotification(t.notification, 1);
  await t.dead(`redrive notification ${fixedId(1)} --reason fixed`);
  await until("it is sent", async () => {
    const { rows } = await t.notification.query(`select from notifications where status = 'SENT'`);
    return rows.length === 1;
  });
  serving.process.kill("SIGTERM");
  expect((await serving.ended).code).toBe(0);
});

test.each([
  ["", "Give a subcommand: "],
  ["lst", 'There is no subcommand "lst". Did you mean "list"?'],
  ["list entitlment", 'Did you mean "entitlement"?'],
  ["list --limit 0", "--limit is a number from 1 to 1000."],
  ["list --after 3", "--after needs one service and --table."],
  ["list --yes", "--yes is not an option of list."],
  ["show entitlement", "Name a service and one id."],
  ["redrive", "Name the service."],
  ["redrive entitlement", "Name the ids to redrive, or use --all."],
  ["discard entitlement", "Name the ids to discard, or use --all."],
  ["discard entitlement 1", "Give a reason with --reason"],
  ["redrive entitlement 1 --all", "Give ids or --all, not both."],
  ["redrive entitlement 1 --type A --reason b", "need --all."],
  ["redrive entitlement 1", "Give a reason with --reason"],
  [`redrive entitlement 1 --reason ${"x".repeat(501)}`, "--reason, 1 to 500 characters."],
  [`redrive entitlement 1 --reason b --by ${"x".repeat(129)}`, "--by, 1 to 128 characters."],
  ["redrive entitlement --all --table notifications --reason b", "Its tables with dead letters: outbox_events."],
])('"dead %s" is rejected with what to do', async (args, says) => {
  const { code, out, err } = await runTodoke(`dead ${args}`, { DATABASE_URL: "postgres://127.0.0.1:1/none" });
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(says);
  expect(err).toContain("Usage: todoke dead ");
});

test("a missing, unavailable or unmigrated database is an error that says what to do", async () => {
  const list = (env: Record<string, string>) => runTodoke("dead list entitlement", env);
  expect(await list({})).toEqual({
    code: 2,
    out: "",
    err: "✗ entitlement: set DATABASE_URL or ENTITLEMENT_DATABASE_URL to a PostgreSQL server\n",
  });
  const away = await list({ ENTITLEMENT_DATABASE_URL: "postgres://me:secret@127.0.0.1:1/none" });
  expect(away).toMatchObject({ code: 1, err: expect.stringContaining("The database of entitlement failed: ") });
  expect(away.err).not.toContain("secret");
  await using t = await testDatabase({ sets: [] });
  expect(await list({ DATABASE_URL: t.url })).toEqual({
    code: 1,
    out: "",
    err: "✗ The schema of entitlement is not up to date: run `todoke migrate entitlement`.\n",
  });
});
