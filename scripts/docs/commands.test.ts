import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
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

/** One row of each kind that was given up, with the ids and the errors that the page speaks of. */
const giveUp = `
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

/** As an operator types it, but for the way to the command. */
function run(line: string, DATABASE_URL: string) {
  const bin = `"${process.execPath}" "${fileURLToPath(new URL("packages/cli/main.ts", root))}"`;
  const env = { PATH: process.env.PATH, DATABASE_URL };
  return spawnSync("sh", ["-c", line.replace("npx todoke", bin)], { encoding: "utf8", timeout: 120_000, env });
}

/** What was given up at the service that the line names. */
const eventTypeOf = (line: string) => (line.includes(" points") ? "PointReservationDue" : "EntitlementGranted");

test("every `todoke dead` command of the runbook finds what it speaks of, and redrives one where it says so", {
  timeout: 600_000, // Some twenty processes, one after the other.
}, async () => {
  const setOf = (name: string) => ({ name, dir: new URL(`services/${name}/migrations/`, root) });
  await using t = await testDatabase({ schema: "entitlement", sets: [kernelMigrations, setOf("entitlement")] });
  for (const name of ["account", "notification", "matchmaking", "points", "gateway-bff"])
    await migrate(t.db, { schema: name.replaceAll("-", "_"), sets: [kernelMigrations, setOf(name)] });
  expect(commands.length).toBeGreaterThan(12);
  for (const line of commands) {
    await t.db.query(giveUp);
    const { status, stdout, stderr } = run(line, t.url);
    expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: "" });
    const does = !line.includes(" redrive ") ? eventTypeOf(line) : /--reason/.test(line) ? "1 row redriven" : "1 row ";
    expect(stdout, line).toContain(does);
  }
});
