/** A bus that stores or delivers events twice, or reverses a batch, for a given number of batches. */
import type { Delivery, EventBus, Handler } from "@todoke/kernel/bus";

export interface BusFaults {
  /** Batches that are published twice. */
  publishTwice: number;
  /** Batches that are delivered twice. */
  deliverTwice: number;
  /** Batches that are delivered in reverse order. */
  reverse: number;
}

export const noFaults = (): BusFaults => ({ publishTwice: 0, deliverTwice: 0, reverse: 0 });

export function flakyBus(bus: EventBus, faults: BusFaults): EventBus {
  return {
    async publish(events) {
      const outcomes = await bus.publish(events);
      if (consumeFault(faults, "publishTwice")) await bus.publish(events).catch(() => {});
      return outcomes;
    },
    subscribe: (subscription) => bus.subscribe({ ...subscription, handle: flakyHandler(subscription.handle, faults) }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

function flakyHandler(handle: Handler, faults: BusFaults): Handler {
  return async (deliveries, stopping) => {
    const order = consumeFault(faults, "reverse") ? deliveries.toReversed() : deliveries;
    const seen = consumeFault(faults, "deliverTwice") ? [...order, ...order.map(toRedelivery)] : order;
    const outcomes = await handle(seen, stopping);
    // The outcome of the last copy counts, because only then is the delivery handled completely.
    return deliveries.map((delivery) => {
      const index = seen.findLastIndex(({ eventId }) => eventId === delivery.eventId);
      return outcomes[index] as (typeof outcomes)[number];
    });
  };
}

const toRedelivery = (delivery: Delivery): Delivery => ({ ...delivery, redelivered: true });

function consumeFault(faults: BusFaults, name: keyof BusFaults): boolean {
  if (faults[name] === 0) return false;
  faults[name]--;
  return true;
}
