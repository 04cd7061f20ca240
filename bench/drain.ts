/** Has a relay publish what waits in the outbox, until all of it is published and settled. */
import type { EventBus } from "@todoke/kernel/bus";
import { createRelay, type RelayOptions } from "@todoke/kernel/outbox";

export async function drainOutbox(events: number, options: RelayOptions): Promise<number> {
  let left = events;
  const all = Promise.withResolvers<void>();
  const counting: Pick<EventBus, "publish"> = {
    async publish(batch) {
      const outcomes = await options.bus.publish(batch);
      for (const { kind } of outcomes) if (kind === "done") left--;
      if (left === 0) all.resolve();
      return outcomes;
    },
  };
  const publishing = createRelay({ ...options, bus: counting });
  publishing.start();
  await all.promise;
  await publishing.stop(); // when the last batch is settled
  return events;
}
