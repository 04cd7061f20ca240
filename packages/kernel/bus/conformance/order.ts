/** The order of the events of one aggregate. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done, retry } from "../../worker/outcome.ts";
import type { Delivery, Envelope } from "../index.ts";
import {
  createHarness,
  ids,
  publishInOrder,
  type RecordingConsumer,
  recordDeliveries,
  sampleEvents,
} from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

const keys = Array.from({ length: 8 }, (_, n) => `account/${n}`);

export function orderConforms(bus: BusUnderTest): void {
  const { name, test, guarantees } = bus;

  test(`${name}: first deliveries of an aggregate are in publish order`, async () => {
    await using harness = createHarness(bus);
    const consumer = await recordDeliveries(await harness.open(), { batchMax: 10 });
    const publishers = [await harness.open(), await harness.open()] as const;
    const histories = keys.map((aggregateKey) => sampleEvents(25, () => ({ aggregateKey })));
    await Promise.all(histories.map((history, n) => publishInOrder(publishers[n % 2 === 0 ? 0 : 1], history)));
    await until("all are received", () => consumer.received.length >= 200);
    assertOrdered(consumer.received, histories);
  });

  const afterRetry = guarantees.ordersAfterRetry
    ? `${name}: a retry blocks the later events of its aggregate, and no others`
    : `${name}: order after a retry is not guaranteed: later events may overtake it, and none is lost`;
  test(afterRetry, async () => {
    await using harness = createHarness(bus);
    const finished: Delivery[] = [];
    const others = sampleEvents(4, () => ({ aggregateKey: "b" }));
    let failures = 0;
    const consumer = await recordDeliveries(await harness.open(), {
      handle: (delivery) => {
        // Fails until all others are finished: if they were blocked too, the test would time out.
        if (delivery.eventType === "Fails" && byKey(finished, "b").length < others.length) {
          failures += 1;
          return retry(300, "not yet");
        }
        finished.push(delivery);
        return done;
      },
    });
    const failing = sampleEvents(4, (n) => ({ aggregateKey: "a", eventType: n === 0 ? "Fails" : "Succeeds" }));
    const process = await harness.open();
    await publishInOrder(process, failing);
    await publishInOrder(process, others);
    await until("all are finished", () => finished.length === 8);
    assert.deepEqual(byKey(finished, "b"), ids(others));
    if (guarantees.ordersAfterRetry) assert.deepEqual(byKey(finished, "a"), ids(failing));
    assert.ok(failures > 0);
    assert.equal(consumer.received.length, 8 + failures);
  });

  const acrossProcesses = guarantees.ordersAcrossProcesses
    ? `${name}: an aggregate's events are handled one after another across processes`
    : `${name}: order across processes is not guaranteed: two may handle one aggregate at once`;
  test(acrossProcesses, async () => {
    await using harness = createHarness(bus);
    const open = new Map<string, number>();
    const finished: Delivery[] = [];
    let together = 0;
    const subscribeBusy = async (): Promise<RecordingConsumer> =>
      recordDeliveries(await harness.open(), {
        batchMax: 4,
        concurrency: 2,
        handle: async (delivery) => {
          const already = open.get(delivery.aggregateKey) ?? 0;
          together = Math.max(together, already + 1);
          open.set(delivery.aggregateKey, already + 1);
          await new Promise(setImmediate);
          finished.push(delivery);
          open.set(delivery.aggregateKey, (open.get(delivery.aggregateKey) ?? 0) - 1);
          return done;
        },
      });
    await Promise.all([subscribeBusy(), subscribeBusy(), subscribeBusy()]);
    const histories = keys.map((aggregateKey) => sampleEvents(15, () => ({ aggregateKey })));
    const process = await harness.open();
    await Promise.all(histories.map((history) => publishInOrder(process, history)));
    await until("all are finished", () => finished.length >= 120);
    assert.equal(new Set(ids(finished)).size, 120);
    if (guarantees.ordersAcrossProcesses) {
      assert.equal(together, 1);
      assertOrdered(finished, histories);
    }
  });
}

/** Compares deliveries with publishes, aggregate by aggregate. */
function assertOrdered(received: readonly Delivery[], histories: readonly (readonly Envelope[])[]): void {
  for (const history of histories) assert.deepEqual(byKey(received, history[0]?.aggregateKey), ids(history));
}

const byKey = (received: readonly Delivery[], key: string | undefined): string[] =>
  ids(received.filter((delivery) => delivery.aggregateKey === key));
