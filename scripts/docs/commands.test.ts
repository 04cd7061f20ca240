import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { migrate } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { blocksOf } from "./markdown.ts";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/runbook.md", root), "utf8");
const commands = blocksOf(page, "sh")
  .flatMap((block) => block.split("\n"))
  .filter((line) => line.startsWith("npx todoke dead "));

/** One dead letter of each kind, with the ids and errors of the page. */
const insertDeadLetters = `
delete from entitlement.outbox_events;
insert into entitlement.outbox_events
  (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
values ('${fixedId(1)}', 'EntitlementGranted', 's', 'a', 1, '{}', 'FAILED', 10, 'cannot be encoded: no such field');
delete from notification.inbox_dlq;
insert into notification.inbox_dlq
  (dlq_id, consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, last_error)
overriding system value
values (1, 'notification', '${fixedId(1)}', 'EntitlementGranted', 's', 'a', '', '{}', '', 'cannot be read');
delete from points.inbox_dlq;
insert into points.inbox_dlq
  (dlq_id, consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, last_error)
overriding system value
values (1, 'points', '${fixedId(1)}', 'PointReservationDue', 's', 'a', '', '{}', '', 'cannot be read');
delete from notification.notifications;
delete from notification.notification_dlq;
insert into notification.notifications
  (notification_id, event_id, user_id, event_type, text, occurred_at, status, attempt_count)
values ('${fixedId(1)}', '${fixedId(1)}', 'u_123', 'EntitlementGranted', '{}', now(), 'FAILED', 10);
insert into notification.notification_dlq
  (notification_id, event_id, user_id, event_type, text, attempt_count, last_error)
values ('${fixedId(1)}', '${fixedId(1)}', 'u_123', 'EntitlementGranted', '{}', 10, 'the receiver answered 500');`;

/** Runs a line as an operator would type it, and confirms with yes. */
function run(line: string, DATABASE_URL: string) {
  const bin = `"${process.execPath}" "${fileURLToPath(new URL("packages/cli/main.ts", root))}"`;
  const env = { PATH: process.env.PATH, DATABASE_URL };
  return spawnSync("sh", ["-c", line.replace("npx todoke", bin)], {
    encoding: "utf8",
    timeout: 120_000,
    env,
    input: "yes\n",
  });
}

/** The event type of the dead letter at the service in the line. */
const eventTypeOf = (line: string) => (line.includes(" points") ? "PointReservationDue" : "EntitlementGranted");

test("every `todoke dead` command of the runbook works as described", {
  timeout: 600_000, // About twenty processes, one after the other.
}, async () => {
  const setOf = (name: string) => ({ name, dir: new URL(`services/${name}/migrations/`, root) });
  await using t = await testDatabase({ schema: "entitlement", sets: [kernelMigrations, setOf("entitlement")] });
  for (const name of ["account", "notification", "matchmaking", "points", "gateway-bff"])
    await migrate(t.db, { schema: name.replaceAll("-", "_"), sets: [kernelMigrations, setOf(name)] });
  expect(commands.length).toBeGreaterThan(12);
  for (const line of commands) {
    await t.db.query(insertDeadLetters);
    const { status, stdout, stderr } = run(line, t.url);
    expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: "" });
    const redriven = `1 dead letter ${/--reason/.test(line) ? "redriven" : ""}`;
    expect(stdout, line).toContain(line.includes(" redrive ") ? redriven : eventTypeOf(line));
  }
});

/** An unresolved order, and halted trading. */
const insertUnresolved = `
insert into orders.outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter,
                                  instrument, side, qty, changed_by, expires_at)
values ('desk', 'k-1', 'o-1', 'tdk-1', '{"time_in_force":"IOC"}', 'sha256:0', 'http', 'BTC-USD', 'BUY', 1, 'desk', now());
insert into orders.idempo_ledger (caller, idempotency_key, order_row_id, request_digest, answer, expires_at)
select 'desk', 'k-1', id, 'sha256:0', '{}', now() from orders.outbox_orders;
update orders.outbox_orders set status = 'sending', lease_until = now();
update orders.outbox_orders set status = 'unknown', lease_until = null, in_doubt_since = now(), last_error_code = 'BROKER_TIMEOUT';
insert into orders.trading_state (scope, mode, reason, set_by) values ('*', 'halt', 'the feed is gone', 'aki');`;

test("the `todoke orders` commands of the runbook resolve an order and resume trading", {
  timeout: 600_000, // As many processes, one after the other.
}, async () => {
  const set = { name: "orders", dir: new URL("services/orders/migrations/", root) };
  await using t = await testDatabase({ schema: "orders", sets: [kernelMigrations, set] });
  await t.db.query(insertUnresolved);
  const lines = blocksOf(page, "sh").flatMap((block) => block.split("\n").filter((line) => line.includes(" orders ")));
  const results: ({ line: string } & ReturnType<typeof run>)[] = [];
  for (const line of lines) {
    results.push({ line, ...run(line, t.url) });
    await nextTurn(); // spawnSync blocks this process, and the test runner would take it for dead after a minute.
  }
  for (const { line, status, stderr } of results)
    expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: "" });
  const outputOf = (verb: string) => results.find(({ line }) => line.includes(` ${verb}`))?.stdout;
  expect(outputOf("state")).toContain("the feed is gone");
  expect(outputOf("list")).toContain("k-1");
  const { rows } = await t.db.query(
    `select (select status from outbox_orders) as status, (select "as" from order_resolutions) as resolved,
            (select mode from trading_state) as mode`,
  );
  expect(rows).toEqual([{ status: "succeeded", resolved: "taken", mode: "active" }]);
});
