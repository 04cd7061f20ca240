/** Crashed brokers and cut networks: no stored event is lost, and no call hangs. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../testing/index.ts";
import { BusUnavailable, type Envelope, type EventBus } from "../index.ts";
import { createHarness, ids, recordDeliveries, sampleEvent, sampleEvents, withTimeout } from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

/** A call that takes longer hangs. */
const resolveWithinMs = 30_000;
/** RabbitMQ starts slowly. */
const restartWithinMs = 120_000;

export function faultsConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: publish rejects with BusUnavailable if the broker cannot be reached`, async () => {
    await using harness = createHarness(bus);
    const process = await harness.open();
    await bus.crash(process);
    const published = process.publish([sampleEvent()]);
    await assert.rejects(withTimeout(resolveWithinMs, "publish rejects", published), { name: "BusUnavailable" });
    await assert.rejects(withTimeout(resolveWithinMs, "check rejects", process.check()), BusUnavailable);
  });

  test(
    `${name}: kill -9 of the broker loses no event that was "done"`,
    async () => {
      if (!bus.ownBroker) throw new Error(`${name}: this run has no broker of its own to kill`);
      await using broker = await bus.ownBroker();
      await using harness = createHarness(bus, { on: broker, ackWaitMs: 2_000 });
      // One consumer is connected throughout; for the other, events are stored until the broker is back.
      await harness.registerConsumer("latecomer");
      const consumer = await recordDeliveries(await harness.open(), { batchMax: 50 });

      let isRestarted = false;
      const publishing = publishUntilDone(await harness.open(), (count) => isRestarted && count >= 2_000);
      await until("events flow", () => consumer.received.length >= 300);
      await broker.restart();
      isRestarted = true;
      const published = new Set(await withTimeout(restartWithinMs, "all are published", publishing));

      const late = await recordDeliveries(await harness.open(), { consumer: "latecomer" });
      for (const { received } of [consumer, late]) {
        const isComplete = () => published.isSubsetOf(new Set(ids(received)));
        await until("all are received", isComplete, { withinMs: restartWithinMs });
      }
    },
    3 * restartWithinMs,
  );
}

/** Publishes like the relay, without a pause: twenty aggregates in step, each event until it is "done". Returns their IDs. */
async function publishUntilDone(bus: EventBus, isEnough: (count: number) => boolean): Promise<string[]> {
  const published: string[] = [];
  while (!isEnough(published.length)) {
    let left = sampleEvents(20, (n) => ({ aggregateKey: `account/${n}` }));
    published.push(...ids(left));
    // The memory bus resolves in the same turn of the event loop: let others run.
    await new Promise(setImmediate);
    while (left.length > 0) {
      const outcomes = await withTimeout(resolveWithinMs, "publish resolves", publishOrNothing(bus, left));
      left = left.filter((_, n) => outcomes[n]?.kind !== "done");
      // The broker is down, and there is no state to wait for but its return.
      if (left.length > 0) await sleep(20);
    }
  }
  return published;
}

async function publishOrNothing(bus: EventBus, events: readonly Envelope[]) {
  try {
    return await bus.publish(events);
  } catch (error) {
    if (error instanceof BusUnavailable) return [];
    throw error;
  }
}
