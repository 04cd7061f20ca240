import { buildHttpApp } from "@todoke/http";
import { fixedId, testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { outboxRoutes } from "./outbox-routes.ts";

const by = { redriven_by: "aki", reason: "the schema is deployed now" };

/** Two FAILED events of different aggregates, one behind the first, and one that is only PENDING. */
async function setup() {
  const t = await testDatabase();
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     select id, 'ThingHappened', 'thing.events', key, version, jsonb_build_object('version', version::text), status, attempts, error
       from unnest($1::uuid[], array['a', 'a', 'b', 'c'], array[1, 2, 1, 1], array['FAILED', 'PENDING', 'FAILED', 'PENDING'],
                   array[10, 0, 1, 0], array['no response', null, null, null]) as e(id, key, version, status, attempts, error)`,
    [[1, 2, 3, 4].map(fixedId)],
  );
  const app = await buildHttpApp({ title: "outbox", version: "0", log: { level: "silent" } });
  let woken = 0;
  outboxRoutes(app, { db: t.db, onRedriven: () => void woken++ });
  return {
    ...t,
    get: (path: string) => app.inject(`/debug/outbox/failed${path}`),
    redrive: (id: string, payload: object = by) =>
      app.inject({ method: "POST", url: `/debug/outbox/failed/${id}/redrive`, payload }),
    woken: () => woken,
    redrives: async () =>
      (await t.db.query("select of_table, of_key, redriven_by, reason, attempt_count, last_error from redrives")).rows,
    async [Symbol.asyncDispose]() {
      await app.close();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("FAILED events are listed oldest first, by pages, with the number of parked events", async () => {
  await using t = await setup();
  // As after a republication of the first event that failed: this one is not parked.
  await t.db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
     values ($1, 'ThingHappened', 'thing.events', 'a', 3, '{}', 'PUBLISHED', now())`,
    [fixedId(5)],
  );
  const all = (await t.get("")).json();
  expect(all).toEqual({
    events: [
      {
        event_id: fixedId(1),
        event_type: "ThingHappened",
        aggregate_key: "a",
        version: 1,
        attempt_count: 10,
        last_error: "no response",
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
        parked: 1,
      },
      expect.objectContaining({ event_id: fixedId(3), last_error: null, parked: 0 }),
    ],
  });
  const first = (await t.get("?limit=1")).json();
  const second = (await t.get(`?limit=1&cursor=${first.next_cursor}`)).json();
  expect([...first.events, ...second.events]).toEqual(all.events);
  expect(second).not.toHaveProperty("next_cursor");
});

test("a FAILED event is shown with its payload; any other id is a 404", async () => {
  await using t = await setup();
  expect((await t.get(`/${fixedId(1)}`)).json()).toMatchObject({
    event_id: fixedId(1),
    status: "FAILED",
    subject: "thing.events",
    payload: { version: "1" },
    redrives: [],
    attempt_count: 10,
    last_error: "no response",
  });
  for (const id of [fixedId(4), fixedId(99)]) {
    const response = await t.get(`/${id}`);
    expect([response.statusCode, response.json().code]).toEqual([404, "failed-event-not-found"]);
    expect((await t.redrive(id)).json().code).toBe("failed-event-not-found");
  }
  expect(await t.redrives()).toEqual([]);
});

test("a redrive resets the attempts and records who, why, and the last error", async () => {
  await using t = await setup();
  const response = await t.redrive(fixedId(1));
  expect([response.statusCode, response.json()]).toEqual([200, { event_id: fixedId(1), status: "PENDING" }]);
  const record = { ...by, attempt_count: 10, last_error: "no response" };
  expect(await t.redrives()).toEqual([{ of_table: "outbox_events", of_key: fixedId(1), ...record }]);
  expect((await t.get(`/${fixedId(1)}`)).json()).toMatchObject({
    status: "PENDING",
    attempt_count: 0,
    redrives: [{ ...record, redriven_at: expect.stringMatching(/^\d{4}-.*Z$/) }],
  });
  const { rows } = await t.db.query(`select status, attempt_count from outbox_events where event_id = $1`, [
    fixedId(1),
  ]);
  expect(rows).toEqual([{ status: "PENDING", attempt_count: 0 }]);
  expect((await t.get("")).json().events.map((event: { event_id: string }) => event.event_id)).toEqual([fixedId(3)]);
  expect(t.woken()).toBe(1);
});

test("ten parallel redrives of an event take effect once; an unrecorded one does not happen", async () => {
  await using t = await setup();
  const responses = await Promise.all(Array.from({ length: 10 }, () => t.redrive(fixedId(1))));
  expect(responses.map((response) => response.statusCode).sort()).toEqual([200, ...Array(9).fill(404)]);
  expect((await t.redrives()).length).toBe(1);
  await t.db.query("drop table redrives");
  expect((await t.redrive(fixedId(3))).statusCode).toBe(500);
  expect((await t.get("")).json().events).toMatchObject([{ event_id: fixedId(3) }]);
  expect(t.woken()).toBe(1);
});

test("a redrive that loses the race for an event is a 404", async () => {
  await using t = await setup();
  const other = await t.db.connect();
  await other.query("begin");
  await other.query(`update outbox_events set status = 'PENDING' where event_id = $1`, [fixedId(1)]);
  const late = t.redrive(fixedId(1));
  await until("the late one waits for the row", async () => {
    const { rows } = await t.db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  });
  await other.query("commit");
  other.release();
  expect((await late).json().code).toBe("failed-event-not-found");
  expect(await t.redrives()).toEqual([]);
});

test("bad input is rejected by the name of the field", async () => {
  await using t = await setup();
  const fieldsOf = (response: { json(): { errors: { field: string }[] } }) =>
    response.json().errors.map(({ field }) => field);
  expect(fieldsOf(await t.get(`/urn:uuid:${fixedId(1)}`))).toEqual(["path.event_id"]);
  expect(fieldsOf(await t.get("?cursor=AA"))).toEqual(["query.cursor"]);
  expect(fieldsOf(await t.get("?limit=1001"))).toEqual(["query.limit"]);
  expect(fieldsOf(await t.redrive(fixedId(1), {}))).toEqual(["body.redriven_by", "body.reason"]);
  expect(await t.redrives()).toEqual([]);
});
