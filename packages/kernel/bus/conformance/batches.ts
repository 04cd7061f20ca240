/** How deliveries are batched: as they arrive, within the limits of the subscription. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import { createHarness, publishAll, recordDeliveries, sampleEvent, sampleEvents } from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

export function batchesConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: deliveries are passed on at once, at most batchMax per call`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const process = await harness.open();
    const sizes: number[] = [];
    await process.subscribe({
      consumer: "listener",
      subjects: ["things.events"],
      batchMax: 7,
      handle: async (deliveries) => {
        sizes.push(deliveries.length);
        return deliveries.map(() => done);
      },
    });
    await publishAll(process, [sampleEvent()]);
    // Nothing else is published until then: a bus that waits for a full batch would hang.
    await until("the event is delivered", () => sizes.length === 1);
    await publishAll(process, sampleEvents(50));
    await until("all are delivered", () => sizes.reduce((sum, size) => sum + size, 0) === 51);
    assert.ok(Math.max(...sizes) <= 7, `a batch of ${Math.max(...sizes)}`);
  });

  test(`${name}: up to "concurrency" batches are handled at once`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    let running = 0;
    let most = 0;
    const busy = harness.gate();
    const consumer = await recordDeliveries(process, {
      batchMax: 1,
      concurrency: 3,
      handle: async () => {
        running += 1;
        most = Math.max(most, running);
        await busy.opened;
        running -= 1;
        return done;
      },
    });
    await publishAll(process, sampleEvents(20));
    await until("three run together", () => running === 3);
    busy.open();
    await until("all are received", () => consumer.received.length === 20);
    assert.equal(most, 3);
  });

  test(`${name}: by default one batch is handled at a time`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    let running = 0;
    const overlaps: number[] = [];
    const consumer = await recordDeliveries(process, {
      batchMax: 1,
      handle: async () => {
        running += 1;
        overlaps.push(running);
        await new Promise(setImmediate);
        running -= 1;
        return done;
      },
    });
    await publishAll(process, sampleEvents(20));
    await until("all are received", () => consumer.received.length === 20);
    assert.equal(Math.max(...overlaps), 1);
  });
}
