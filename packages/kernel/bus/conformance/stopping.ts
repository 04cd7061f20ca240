/** A process that stops finishes its running handlers and releases the rest at once. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done, release, retry } from "../../worker/outcome.ts";
import type { EventBus } from "../index.ts";
import {
  createHarness,
  ids,
  publishAll,
  type RecordingConsumer,
  recordDeliveries,
  sampleEvent,
  sampleEvents,
} from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

export function stoppingConforms(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: closing a subscription waits for its handlers and releases the rest at once`, () =>
    handOver(bus, (_, consumer) => consumer[Symbol.asyncDispose]()));

  test(`${name}: closing a bus waits for its handlers and releases the rest at once`, () =>
    handOver(bus, (process) => process[Symbol.asyncDispose]()));

  test(`${name}: a handler can release its batch to another process when the bus stops`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const end = harness.gate();
    const event = sampleEvent();
    const leaving = await recordDeliveries(await harness.open(), {
      handle: async (_, stopping) => {
        await Promise.race([
          end.opened,
          new Promise((aborted) => stopping.addEventListener("abort", aborted, { once: true })),
        ]);
        return release("the process stops");
      },
    });
    await publishAll(await harness.open(), [event]);
    await until("it is being handled", () => leaving.countOf(event) === 1);
    const staying = await recordDeliveries(await harness.open());
    await leaving[Symbol.asyncDispose]();
    // Long before the ack wait is over: it was released.
    await until("another process has it", () => staying.countOf(event) === 1);
  });

  test(`${name}: a closed bus can be closed again and rejects publishes`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    await process[Symbol.asyncDispose]();
    await process[Symbol.asyncDispose]();
    await assert.rejects(process.publish([sampleEvent()]), { name: "BusUnavailable" });
  });
}

async function handOver(
  bus: BusUnderTest,
  close: (process: EventBus, consumer: RecordingConsumer) => PromiseLike<void>,
): Promise<void> {
  await using harness = createHarness(bus);
  await harness.registerConsumer();
  const events = sampleEvents(10);
  await publishAll(await harness.open(), events);

  const working = harness.gate();
  const process = await harness.open();
  const leaving = await recordDeliveries(process, { batchMax: 2, handle: () => working.opened.then(() => done) });
  await until("it has begun", () => leaving.received.length > 0);
  const running = new Set(ids(leaving.received));

  let isClosed = false;
  const closed = Promise.resolve(close(process, leaving)).then(() => {
    isClosed = true;
  });
  const clock = sampleEvent();
  const staying = await recordDeliveries(await harness.open(), {
    handle: ({ eventId, redelivered }) =>
      eventId === clock.eventId && !redelivered ? retry(300, "a timer kept by the broker") : done,
  });
  const rest = events.filter(({ eventId }) => !running.has(eventId));
  const hasTheRest = () => rest.every((event) => staying.countOf(event) === 1);
  // Long before the ack wait is over: they were released.
  await until("another process has the rest", hasTheRest);
  assert.equal(isClosed, false);

  working.open();
  await closed;
  await publishAll(await harness.open(), [clock]);
  await until("some time has passed", () => staying.countOf(clock) === 2);
  // Handlers that finished during the close were acked: their events are not redelivered.
  assert.deepEqual(new Set(ids(leaving.received)), running);
  assert.equal(staying.received.length, rest.length + 2);
}
