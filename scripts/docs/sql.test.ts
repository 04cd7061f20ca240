import { readFileSync } from "node:fs";
import { type Db, migrate } from "@todoke/kernel/db";
import { redriveDead } from "@todoke/kernel/inbox";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { redriveEvents } from "@todoke/kernel/outbox";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { blocksOf } from "./markdown.ts";

const root = new URL("../../", import.meta.url);
const statementsOf = (page: string) => blocksOf(readFileSync(new URL(page, root), "utf8"), "sql");

/** The schemas that an operator meets: a service with the kernel's tables, and the bus on PostgreSQL. */
async function setup() {
  const own = { name: "entitlement", dir: new URL("services/entitlement/migrations/", root) };
  const bus = { name: "bus-postgres", dir: new URL("packages/bus-postgres/migrations/", root) };
  const t = await testDatabase({ schema: "entitlement", sets: [kernelMigrations, own] });
  await migrate(t.db, { schema: "todoke_bus", sets: [bus] });
  return t;
}

test.each(["docs/runbook.md", "docs/failure-modes.md", "docs/slo.md"])("every SQL block of %s runs", async (page) => {
  await using t = await setup();
  const statements = statementsOf(page);
  expect(statements.length).toBeGreaterThan(3);
  for (const statement of statements) await expect(t.db.query(statement), statement).resolves.toBeDefined();
});

/** The one block of the runbook that does this to this table. */
function runbooks(start: string, containing: string): string {
  const [only, ...others] = statementsOf("docs/runbook.md").filter(
    (text) => text.startsWith(start) && text.includes(containing),
  );
  if (!only || others.length > 0)
    throw new Error(`the runbook should have one block that begins "${start}" and says "${containing}"`);
  return only;
}

/** All that a redrive could change; the due time only as far as it can be compared. */
const eventStates = async (db: Db) =>
  (
    await db.query(
      `select status, attempt_count, next_retry_at <= now() as due, lease_epoch, locked_by, lease_until, last_error
         from outbox_events order by position`,
    )
  ).rows;

test("the runbook redrives a FAILED event as the kernel does, and touches no other", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error, next_retry_at)
     select id, 'T', 's', 'a', 1, '{}', status, 7, 'why', now() + interval '1 hour'
       from unnest($1::uuid[], array['FAILED', 'FAILED', 'PENDING']) as e(id, status)`,
    [[1, 2, 3].map(fixedId)],
  );
  const { rows } = await t.db.query(runbooks("update entitlement.outbox_events", "any('{"));
  expect(rows).toEqual([{ event_id: fixedId(1) }]);
  expect(await redriveEvents(t.db, [fixedId(2)])).toEqual([fixedId(2)]);
  const [byRunbook, byKernel, untouched] = await eventStates(t.db);
  expect(byRunbook).toEqual(byKernel);
  expect(byRunbook).toMatchObject({ status: "PENDING", attempt_count: 0, due: true });
  expect(untouched).toMatchObject({ status: "PENDING", attempt_count: 7, due: false });
});

test("the runbook redrives a dead letter as the kernel does, and touches no other", async () => {
  await using t = await setup();
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, attempt_count, next_retry_at)
     select 'c', id, 'T', 's', 'a', '', '{}', '', 7, now() + interval '1 hour' from unnest($1::uuid[]) as e(id)`,
    [[1, 2, 3].map(fixedId)],
  );
  const { rows } = await t.db.query(runbooks("update entitlement.inbox_dlq", "any('{"));
  expect(rows).toEqual([{ dlq_id: 1n }]);
  expect(await redriveDead(t.db, [2n])).toEqual(["2"]);
  const states = await t.db.query(
    `select status, attempt_count, next_retry_at <= now() as due from inbox_dlq order by dlq_id`,
  );
  const redriven = { status: "PENDING", attempt_count: 0, due: true };
  expect(states.rows).toEqual([redriven, redriven, { status: "DEAD", attempt_count: 7, due: false }]);
});
