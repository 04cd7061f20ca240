import { buildHttpApp } from "@todoke/http";
import { outboxEvents } from "@todoke/kernel/outbox";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { workRoutes } from "./work-routes.ts";

/** Three events: due for a minute, claimed, and due in an hour. */
async function setup() {
  const t = await testDatabase();
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count,
                                next_retry_at, locked_by, lease_until, last_error)
     select id, 'ThingHappened', 's', key, 1, '{}', status, attempts, now() + due, worker, now() + lease, error
       from unnest($1::uuid[], array['a', 'b', 'c'], array['PENDING', 'IN_FLIGHT', 'PENDING'], array[0, 1, 2],
                   array['-1 minute', '0', '1 hour']::interval[], array[null, 'relay@host', null],
                   array[null, '1 minute', null]::interval[], array[null, null, 'no response'])
              as e(id, key, status, attempts, due, worker, lease, error)`,
    [[1, 2, 3].map(fixedId)],
  );
  const app = await buildHttpApp({ title: "work", version: "0", log: { level: "silent" } });
  workRoutes(app, { db: t.db, tables: [{ table: outboxEvents.table, lookup: ["aggregate_key"] }] });
  return {
    get: async (path: string) => {
      const response = await app.inject(`/debug/work${path}`);
      return { status: response.statusCode, ...response.json() };
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("every claimed table is listed with its backlog and the age of its oldest due row", async () => {
  await using t = await setup();
  const { tables } = await t.get("");
  expect(tables).toEqual([
    { table: "outbox_events", ready: 2, claimed: 1, waiting: 0, oldest_due_seconds: expect.any(Number) },
  ]);
  expect(tables[0].oldest_due_seconds).toBeGreaterThanOrEqual(60);
});

test("the oldest due rows leave out rows that are claimed or not due", async () => {
  await using t = await setup();
  const { rows } = await t.get("/outbox_events?limit=5");
  expect(rows).toMatchObject([{ key: fixedId(1), status: "PENDING", attempt_count: 0, locked_by: null }]);
});

test("the rows of one key are shown in any status, with their worker and last error", async () => {
  await using t = await setup();
  expect((await t.get("/outbox_events/aggregate_key/b")).rows).toMatchObject([
    { key: fixedId(2), status: "IN_FLIGHT", locked_by: "relay@host", lease_until: expect.stringMatching(/Z$/) },
  ]);
  expect((await t.get("/outbox_events/aggregate_key/c")).rows).toMatchObject([{ last_error: "no response" }]);
});

test("other tables, and columns without an index, are not found", async () => {
  await using t = await setup();
  for (const path of ["/pg_user", "/outbox_events/payload/x", "/pg_user/usename/x"])
    expect(await t.get(path)).toMatchObject({ status: 404, code: "not-found" });
});
