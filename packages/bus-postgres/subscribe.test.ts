import { randomUUIDv7 } from "node:crypto";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPostgresBus } from "./index.ts";

test("consumers that join while others publish get every event, each once", async () => {
  await using t = await testDatabase({ sets: [] });
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
  for (let n = 0; n < 30; n++) {
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
  expect(rows.length).toBe(30);
  expect(rows.filter(({ deliveries, messages }) => deliveries !== messages)).toEqual([]);
});

test("a new consumer gets what was published before it came, in order, and an old one is not given it again", async () => {
  await using t = await testDatabase({ sets: [] });
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
  const listen = () =>
    bus.subscribe({
      consumer: "late",
      subjects: ["s.events"],
      handle: async (all) => {
        seen.push(...all.map((each) => each.eventId));
        return all.map(() => ({ kind: "done" }));
      },
    });
  {
    await using _ = await listen();
    await expect.poll(() => seen).toEqual(ids);
  }
  await using _ = await listen();
  const left = await t.db.query(`select from bus.bus_deliveries where status <> 'DONE'`);
  expect(left.rowCount).toBe(0);
  expect(seen).toEqual(ids);
});

test("what comes in small claims while a batch is handled is handed over together", async () => {
  await using t = await testDatabase({ sets: [] });
  await using bus = await openPostgresBus({ url: t.url, schema: "bus" });
  const firstMayEnd = Promise.withResolvers<void>();
  const handed: number[] = [];
  await using _ = await bus.subscribe({
    consumer: "slow",
    subjects: ["s.events"],
    handle: async (all) => {
      handed.push(all.length);
      if (handed.length === 1) await firstMayEnd.promise;
      return all.map(() => ({ kind: "done" }));
    },
  });
  const inState = async (status: string) =>
    (await t.db.query(`select from bus.bus_deliveries where status = $1`, [status])).rowCount;
  for (let n = 1; n <= 10; n++) {
    const eventId = randomUUIDv7();
    const about = { eventType: "T", subject: "s.events", aggregateKey: eventId, occurredAt: "" };
    await bus.publish([{ eventId, ...about, headers: {}, payload: new Uint8Array() }]);
    await expect.poll(() => inState("IN_FLIGHT")).toBe(n);
  }
  firstMayEnd.resolve();
  await expect.poll(() => inState("DONE")).toBe(10);
  // A claim is on record a moment before its answer is here: the last one may come too late for the others.
  expect([
    [1, 9],
    [1, 8, 1],
  ]).toContainEqual(handed);
});
