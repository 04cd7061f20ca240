/** The effect of each outcome, and of a delivery without one. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { dead, done, release, retry } from "../../worker/outcome.ts";
import type { Delivery } from "../index.ts";
import { createHarness, publishAll, recordDeliveries, sampleEvent, sampleEvents } from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

/** Short enough for a test to wait for, and long enough for a process that stalls for seconds: it is extended every third. */
const ackWaitMs = 6_000;
/** More than the ack wait. */
const longerMs = 1.25 * ackWaitMs;

export function outcomesConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: an event is redelivered if its consumer crashes before the ack`, async () => {
    await using harness = createHarness(bus, { ackWaitMs });
    const crashing = await harness.open();
    const event = sampleEvent();
    const first = await recordDeliveries(crashing, {
      handle: async () => {
        await bus.crash(crashing);
        return done;
      },
    });
    await publishAll(await harness.open(), [event]);
    await until("the first process has handled it", () => first.countOf(event) === 1);
    const second = await recordDeliveries(await harness.open());
    await until("it is redelivered", () => second.countOf(event) === 1);
    assert.deepEqual([first, second].map(redelivered), [[false], [true]]);
  });

  test(`${name}: a retry is redelivered after its delay and not before`, async () => {
    await using harness = createHarness(bus);
    const delayMs = 400;
    const times: number[] = [];
    const process = await harness.open();
    const consumer = await recordDeliveries(process, {
      handle: () => {
        times.push(performance.now());
        return times.length === 1 ? retry(delayMs, "not yet") : done;
      },
    });
    await publishAll(process, [sampleEvent()]);
    await until("it is redelivered", () => times.length === 2);
    const [sent = 0, back = 0] = times;
    assert.ok(back - sent >= delayMs, `redelivered after ${back - sent} ms`);
    assert.deepEqual(redelivered(consumer), [false, true]);
  });

  test(`${name}: a released event is redelivered`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    let times = 0;
    // It was not attempted, so the bus may deliver it as new.
    await using _ = await recordDeliveries(process, { handle: () => (++times === 1 ? release("not now") : done) });
    await publishAll(process, [sampleEvent()]);
    await until("it is redelivered", () => times === 2);
  });

  test(`${name}: done and dead events are not redelivered`, async () => {
    await using harness = createHarness(bus, { ackWaitMs });
    const process = await harness.open();
    const [finished, unreadable, clock] = [sampleEvent(), sampleEvent(), sampleEvent()];
    const consumer = await recordDeliveries(process, {
      handle: (delivery) => {
        if (delivery.eventId === finished.eventId) return done;
        if (delivery.eventId === unreadable.eventId) return dead("cannot be read");
        return delivery.redelivered ? done : retry(longerMs, "a timer kept by the broker");
      },
    });
    await publishAll(process, [finished, unreadable, clock]);
    await until("the ack wait has passed", () => consumer.countOf(clock) === 2);
    assert.equal(consumer.countOf(finished), 1);
    assert.equal(consumer.countOf(unreadable), 1);
  });

  test(`${name}: the whole batch is redelivered if its handler throws`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const process = await harness.open();
    const events = sampleEvents(3);
    await publishAll(process, events);
    const received: Delivery[] = [];
    await process.subscribe({
      consumer: "listener",
      subjects: ["things.events"],
      handle: async (deliveries) => {
        received.push(...deliveries);
        if (deliveries.some((delivery) => !delivery.redelivered)) throw new Error("the handler has a bug");
        return deliveries.map(() => done);
      },
    });
    const redeliveredCount = () =>
      new Set(received.filter((delivery) => delivery.redelivered).map(({ eventId }) => eventId)).size;
    await until("all three are redelivered", () => redeliveredCount() === 3);
  });

  test(`${name}: an event that always fails does not block others`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    const poison = sampleEvent({ eventType: "Poison" });
    const consumer = await recordDeliveries(process, {
      handle: ({ eventType }) => (eventType === "Poison" ? retry(20, "it always fails") : done),
    });
    await publishAll(process, [poison]);
    await until("the poison event is redelivered", () => consumer.countOf(poison) >= 2);
    const others = sampleEvents(100);
    await publishAll(process, others);
    await until("the others are handled", () => others.every((event) => consumer.countOf(event) === 1));
    const before = consumer.countOf(poison);
    await until("the poison event is redelivered again", () => consumer.countOf(poison) > before);
  });

  test(`${name}: hundreds of waiting retries do not block others`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    const minuteMs = 60_000;
    const consumer = await recordDeliveries(process, {
      batchMax: 10,
      handle: ({ eventType }) => (eventType === "Poison" ? retry(minuteMs, "it always fails") : done),
    });
    const others = sampleEvents(20);
    await publishAll(process, [...sampleEvents(500, () => ({ eventType: "Poison" })), ...others]);
    await until("the others are handled", () => others.every((event) => consumer.countOf(event) === 1));
  });

  test(`${name}: an event is not redelivered while its handler runs longer than the ack wait`, async () => {
    await using harness = createHarness(bus, { ackWaitMs });
    const process = await harness.open();
    const [slow, clock] = [sampleEvent({ eventType: "Slow" }), sampleEvent({ eventType: "Clock" })];
    const slowDone = harness.gate();
    const consumers = [await subscribeSlowly(), await subscribeSlowly()];
    const received = (event: typeof slow) => consumers.reduce((sum, consumer) => sum + consumer.countOf(event), 0);

    async function subscribeSlowly() {
      return recordDeliveries(await harness.open(), {
        batchMax: 1,
        concurrency: 2,
        handle: async ({ eventType, redelivered }) => {
          if (eventType === "Slow") await slowDone.opened;
          return eventType === "Clock" && !redelivered ? retry(longerMs, "a timer kept by the broker") : done;
        },
      });
    }

    await publishAll(process, [slow, clock]);
    await until("the ack wait has passed", () => received(clock) === 2);
    assert.equal(received(slow), 1);
    slowDone.open();
  });
}

const redelivered = ({ received }: { readonly received: readonly Delivery[] }) =>
  received.map((delivery) => delivery.redelivered);
