import { buildHttpApp } from "@todoke/http";
import type { Delivery } from "@todoke/kernel/bus";
import { openInbox } from "@todoke/kernel/inbox";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { inboxRoutes } from "./inbox-routes.ts";

const consumer = "notification";
const by = { redriven_by: "aki", reason: "the schema is deployed now" };

const delivery = (n: number, payload: string): Delivery => ({
  eventId: fixedId(n),
  eventType: "ThingHappened",
  subject: "thing.events",
  aggregateKey: `a${n}`,
  occurredAt: "2026-01-08T07:00:00Z",
  headers: {},
  payload: Buffer.from(payload),
  redelivered: false,
});

/** A consumer that reads numbers only. */
async function setup() {
  const t = await testDatabase();
  const app = await buildHttpApp({ title: "inbox", version: "0", log: { level: "silent" } });
  let woken = 0;
  inboxRoutes(app, { db: t.db, consumer, onRedriven: () => void woken++ });
  const effects: number[] = [];
  const inbox = openInbox({
    db: t.db,
    consumer,
    read: ({ payload }) => Number(JSON.parse(Buffer.from(payload).toString())),
    effect: async (_tx, numbers) => void effects.push(...numbers),
  });
  const send = async (url: string, payload?: object) => {
    const response = await app.inject(payload ? { method: "POST", url, payload } : { url });
    return { status: response.statusCode, ...response.json() };
  };
  return {
    ...t,
    inbox,
    effects,
    send,
    woken: () => woken,
    deliver: (...all: Delivery[]) => inbox.handle(all, new AbortController().signal),
    async [Symbol.asyncDispose]() {
      await app.close();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("dead events are listed oldest first, by pages, and only those of the consumer", async () => {
  await using t = await setup();
  await t.deliver(delivery(1, "x"), delivery(2, "y"));
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     values ('another', $1, 'T', 's', 'a', '', '{}', '')`,
    [fixedId(9)],
  );
  const first = await t.send("/debug/inbox/dlq?limit=1");
  expect(first.events).toMatchObject([{ event_id: fixedId(1), last_error: expect.stringContaining("cannot be read") }]);
  const second = await t.send(`/debug/inbox/dlq?limit=1&cursor=${first.next_cursor}`);
  expect(second.events).toMatchObject([{ event_id: fixedId(2), subject: "thing.events", aggregate_key: "a2" }]);
  expect(second).not.toHaveProperty("next_cursor");
});

test("a dead event is shown with its payload, redriven once, and takes effect", async () => {
  await using t = await setup();
  await t.deliver(delivery(1, "x"));
  const { events } = await t.send("/debug/inbox/dlq");
  const one = `/debug/inbox/dlq/${events[0].dlq_id}`;
  expect(await t.send(one)).toMatchObject({ payload_base64: "eA==", status: "DEAD", subject: "thing.events" });
  await t.db.query(`update inbox_dlq set payload = '7'`);
  expect(await t.send(`${one}/redrive`, by)).toEqual({ status: 200, redriven: true });
  expect(await t.send(`${one}/redrive`, by)).toEqual({ status: 200, redriven: false });
  expect(t.woken()).toBe(1);
  expect(await t.inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await t.send(one)).toMatchObject({
    status: "RESOLVED",
    redrives: [{ ...by, last_error: expect.stringContaining("cannot be read") }],
  });
  expect(t.effects).toEqual([7]);
  expect((await t.send("/debug/inbox/dlq")).events).toEqual([]);
});

test("a dead event of another consumer can be neither read nor redriven", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     values ('another', $1, 'T', 's', 'a', '', '{}', '') returning dlq_id`,
    [fixedId(9)],
  );
  const one = `/debug/inbox/dlq/${rows[0]?.dlq_id}`;
  for (const response of [await t.send(one), await t.send(`${one}/redrive`, by)])
    expect(response).toMatchObject({ status: 404, code: "dead-letter-not-found" });
});

test("invalid ids and incomplete redrives are rejected by the name of the field", async () => {
  await using t = await setup();
  for (const path of ["/debug/inbox/dlq/0", "/debug/inbox/dlq/9999999999999999999", "/debug/inbox/dlq?limit=101"])
    expect((await t.send(path)).status).toBe(400);
  const rejected = await t.send("/debug/inbox/dlq/1/redrive", {});
  expect(rejected.errors.map(({ field }: { field: string }) => field)).toEqual(["body.redriven_by", "body.reason"]);
});
