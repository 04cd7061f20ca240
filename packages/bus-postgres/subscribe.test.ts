import { randomUUIDv7 } from "node:crypto";
import { repetitions, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPostgresBus } from "./index.ts";
import { busMigrations } from "./store.ts";

test("consumers that join while others publish get every event, each once", async () => {
  await using t = await testDatabase({ schema: "bus", sets: [busMigrations] });
  const open = () => openPostgresBus({ url: t.url, schema: "bus", historyBatchMax: 100 });
  await using first = await open();
  await using second = await open();
  let subject = "";
  const event = () => ({
    eventId: randomUUIDv7(),
    eventType: "ThingHappened",
    subject,
    aggregateKey: randomUUIDv7(),
    occurredAt: "2026-01-01T00:00:00Z",
    headers: {},
    payload: new Uint8Array(),
  });
  let publishing = true;
  const publishers = [first, second, first, second].map(async (bus) => {
    while (publishing) await bus.publish([event()]);
  });
  const consumers = repetitions(30);
  for (let n = 0; n < consumers; n++) {
    // Publishers never pause, so every join leaves a longer history to the next. A new subject now and then bounds it.
    if (n % 5 === 0) subject = `thing-${n}.events`;
    const subscription = await second.subscribe({
      consumer: `consumer-${n}`,
      subjects: [subject],
      handle: async () => [],
    });
    const joining = () => t.db.query(`select from bus.bus_joins`);
    await expect.poll(async () => (await joining()).rowCount, { timeout: 60_000 }).toBe(0);
    await subscription[Symbol.asyncDispose]();
  }
  publishing = false;
  await Promise.all(publishers);
  const { rows } = await t.db.query(
    `select s.consumer, count(d)::int as deliveries, count(distinct m.message_id)::int as messages
       from bus.bus_subscriptions s
       join bus.bus_messages m using (subject)
       left join bus.bus_deliveries d on d.consumer = s.consumer and d.message_id = m.message_id
      group by s.consumer`,
  );
  expect(rows.length).toBe(consumers);
  expect(rows.filter(({ deliveries, messages }) => deliveries !== messages)).toEqual([]);
});

test("a new consumer gets the history in order, and a known one does not get it again", async () => {
  await using t = await testDatabase({ schema: "bus", sets: [busMigrations] });
  await using bus = await openPostgresBus({ url: t.url, schema: "bus" });
  const seen: string[] = [];
  const ids = Array.from({ length: 5 }, () => randomUUIDv7());
  for (const eventId of ids) {
    await bus.publish([
      {
        eventId,
        eventType: "T",
        subject: "s.events",
        aggregateKey: "a",
        occurredAt: "",
        headers: {},
        payload: new Uint8Array(),
      },
    ]);
  }
  const subscribe = () =>
    bus.subscribe({
      consumer: "late",
      subjects: ["s.events"],
      handle: async (all) => {
        seen.push(...all.map((each) => each.eventId));
        return all.map(() => ({ kind: "done" }));
      },
    });
  {
    await using _ = await subscribe();
    await expect.poll(() => seen).toEqual(ids);
  }
  await using _ = await subscribe();
  const left = await t.db.query(`select from bus.bus_deliveries where status <> 'DONE'`);
  expect(left.rowCount).toBe(0);
  expect(seen).toEqual(ids);
});

test("deliveries of small claims are handled together once the handler is free", async () => {
  await using t = await testDatabase({ schema: "bus", sets: [busMigrations] });
  await using bus = await openPostgresBus({ url: t.url, schema: "bus" });
  const finishFirst = Promise.withResolvers<void>();
  const batchSizes: number[] = [];
  await using _ = await bus.subscribe({
    consumer: "slow",
    subjects: ["s.events"],
    handle: async (all) => {
      batchSizes.push(all.length);
      if (batchSizes.length === 1) await finishFirst.promise;
      return all.map(() => ({ kind: "done" }));
    },
  });
  const inState = async (status: string) =>
    (await t.db.query(`select from bus.bus_deliveries where status = $1`, [status])).rowCount;
  for (let n = 1; n <= 10; n++) {
    const eventId = randomUUIDv7();
    const fields = { eventType: "T", subject: "s.events", aggregateKey: eventId, occurredAt: "" };
    await bus.publish([{ eventId, ...fields, headers: {}, payload: new Uint8Array() }]);
    await expect.poll(() => inState("IN_FLIGHT")).toBe(n);
  }
  finishFirst.resolve();
  await expect.poll(() => inState("DONE")).toBe(10);
  // The claim is committed a moment before its result arrives, so the last one may miss the others.
  expect([
    [1, 9],
    [1, 8, 1],
  ]).toContainEqual(batchSizes);
});
