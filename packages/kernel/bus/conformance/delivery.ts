/** Which consumer gets which event, and how often. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import {
  createHarness,
  ids,
  publishAll,
  publishInOrder,
  recordDeliveries,
  sampleEvent,
  sampleEvents,
  sorted,
} from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

export function deliveryConforms(bus: BusUnderTest): void {
  const { name, test, guarantees } = bus;

  test(`${name}: a published event survives a crash of its publisher`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const publisher = await harness.open();
    const event = sampleEvent();
    await publishAll(publisher, [event]);
    await bus.crash(publisher);
    const consumer = await recordDeliveries(await harness.open());
    await until("the event arrives", () => consumer.countOf(event) === 1);
  });

  test(`${name}: publishing no events returns no outcomes`, async () => {
    await using harness = createHarness(bus);
    assert.deepEqual(await (await harness.open()).publish([]), []);
  });

  test(`${name}: check names the engine`, async () => {
    await using harness = createHarness(bus);
    assert.notEqual((await (await harness.open()).check()).engine, "");
  });

  test(`${name}: readLag counts what a consumer has not processed`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer("listener");
    await harness.registerConsumer("other");
    const process = await harness.open();
    const read = (consumer: string) => process.readLag?.(consumer, ["things.events"]) ?? Promise.resolve(undefined);
    if ((await read("listener")) === undefined) return; // The bus in memory has no operators.
    const waiting = async (consumer: string) => (await read(consumer))?.waiting;
    assert.equal(await waiting("listener"), 0);
    await publishAll(process, sampleEvents(3));
    await until("they wait", async () => (await waiting("listener")) === 3);
    const { oldestMs = 0 } = (await read("listener")) ?? {};
    assert.ok(oldestMs >= 0 && oldestMs < 600_000, `${oldestMs} ms`);
    const consumer = await recordDeliveries(process);
    await until("all arrive", () => consumer.received.length === 3);
    await until("none waits", async () => (await waiting("listener")) === 0);
    assert.equal(await waiting("other"), 3);
  });

  if (guarantees.dedupes) {
    test(`${name}: an event published twice is delivered once`, async () => {
      const { received, twice, last } = await publishTwice(bus);
      assert.deepEqual(received, [twice, last]);
    });
  } else {
    test(`${name}: has no deduplication: an event published twice is delivered twice`, async () => {
      const { received, twice, last } = await publishTwice(bus);
      assert.deepEqual(received, [twice, twice, last]);
    });
  }

  test(`${name}: two consumers each get every event`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    const one = await recordDeliveries(process, { consumer: "one" });
    const other = await recordDeliveries(process, { consumer: "other" });
    const events = sampleEvents(30);
    await publishAll(process, events);
    await until("both have all", () => one.received.length >= 30 && other.received.length >= 30);
    assert.deepEqual(sorted(ids(one.received)), sorted(ids(events)));
    assert.deepEqual(sorted(ids(other.received)), sorted(ids(events)));
  });

  test(`${name}: a consumer gets the events published while it was disconnected`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const process = await harness.open();
    const events = sampleEvents(30);
    await publishAll(process, events);
    const consumer = await recordDeliveries(process);
    await until("it has caught up", () => consumer.received.length >= 30);
    assert.deepEqual(sorted(ids(consumer.received)), sorted(ids(events)));
  });

  if (guarantees.replaysToNewConsumers) {
    test(`${name}: a new consumer gets earlier events`, async () => {
      await using harness = createHarness(bus);
      const process = await harness.open();
      const events = sampleEvents(30);
      await publishAll(process, events);
      const consumer = await recordDeliveries(process, { consumer: "newcomer" });
      await until("it has the earlier events", () => consumer.received.length >= 30);
      assert.deepEqual(sorted(ids(consumer.received)), sorted(ids(events)));
    });
  } else {
    test(`${name}: has no replay: an event without a consumer is released`, async () => {
      await using harness = createHarness(bus);
      const [outcome] = await (await harness.open()).publish([sampleEvent()]);
      assert.equal(outcome?.kind, "release");
    });
  }

  test(`${name}: processes with one consumer name share its events`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    // Neither finishes before both have some: a fast one could take all of them before the other has started.
    const busy = harness.gate();
    const slowly = { batchMax: 2, answer: () => busy.opened.then(() => done) };
    const first = await recordDeliveries(await harness.open(), slowly);
    const second = await recordDeliveries(await harness.open(), slowly);
    const events = sampleEvents(60);
    await publishAll(await harness.open(), events);
    await until("both have some", () => first.received.length > 0 && second.received.length > 0);
    busy.open();
    await until("all have been delivered", () => first.received.length + second.received.length >= 60);
    assert.deepEqual(sorted(ids([...first.received, ...second.received])), sorted(ids(events)));
  });

  test(`${name}: an event reaches only the consumers of its subject`, async () => {
    await using harness = createHarness(bus);
    const subjects = Array.from({ length: 12 }, (_, n) => `service-${n % 4}.topic_${n}.events`);
    // Two of the three subjects of one service, and one of another's.
    const mine = [0, 4, 5].map((n) => subjects[n] ?? "");
    const process = await harness.open();
    const all = await recordDeliveries(process, { consumer: "all", subjects });
    const some = await recordDeliveries(process, { consumer: "some", subjects: mine });
    const events = sampleEvents(120, (n) => ({ subject: subjects[n % 12] ?? "" }));
    await publishAll(process, events);
    const wanted = events.filter(({ subject }) => mine.includes(subject));
    await until("all are received", () => all.received.length >= 120 && some.received.length >= wanted.length);
    assert.deepEqual(sorted(ids(all.received)), sorted(ids(events)));
    assert.deepEqual(sorted(ids(some.received)), sorted(ids(wanted)));
  });
}

/** The last event has the same aggregate, so all copies of the first arrive before it. */
async function publishTwice(bus: BusUnderTest) {
  await using harness = createHarness(bus);
  await harness.registerConsumer();
  const process = await harness.open();
  const [twice, last] = [sampleEvent({ aggregateKey: "one" }), sampleEvent({ aggregateKey: "one" })];
  await publishInOrder(process, [twice, twice, last]);
  const consumer = await recordDeliveries(process);
  await until("the last event arrives", () => consumer.countOf(last) === 1);
  return { received: ids(consumer.received), twice: twice.eventId, last: last.eventId };
}
