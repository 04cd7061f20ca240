/** Runs a relay until all events in the outbox are published and settled. */
import type { EventBus } from "@todoke/kernel/bus";
import { createRelay, type RelayOptions } from "@todoke/kernel/outbox";

export async function drainOutbox(events: number, options: RelayOptions): Promise<number> {
  let left = events;
  const allPublished = Promise.withResolvers<void>();
  const countingBus: Pick<EventBus, "publish"> = {
    async publish(batch) {
      const outcomes = await options.bus.publish(batch);
      for (const { kind } of outcomes) if (kind === "done") left--;
      if (left === 0) allPublished.resolve();
      return outcomes;
    },
  };
  const relay = createRelay({ ...options, bus: countingBus });
  relay.start();
  await allPublished.promise;
  await relay.stop(); // Waits until the last batch is settled.
  return events;
}
