import { randomUUIDv7 } from "node:crypto";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openPostgresBus } from "./index.ts";

test("consumers that come while others publish get every event, each once", async () => {
  await using t = await testDatabase({ sets: [] });
  const open = () => openPostgresBus({ url: t.url, schema: "bus" });
  await using first = await open();
  await using second = await open();
  const event = () => ({
    eventId: randomUUIDv7(),
    eventType: "ThingHappened",
    subject: "thing.events",
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
    const subscription = await second.subscribe({
      consumer: `consumer-${n}`,
      subjects: ["thing.events"],
      handle: async () => [],
    });
    const joining = () => t.db.query(`select from bus.bus_joins`);
    await expect.poll(async () => (await joining()).rowCount, { timeout: 60_000 }).toBe(0);
    await subscription[Symbol.asyncDispose]();
  }
  publishing = false;
  await Promise.all(publishers);
  const { rows } = await t.db.query(
    `select consumer, count(*)::int - (select count(*)::int from bus.bus_messages) as missing from bus.bus_deliveries group by consumer`,
  );
  expect(rows.length).toBe(30);
  expect(rows.filter((row) => row.missing !== 0)).toEqual([]);
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
