/**
 * A bus that now and then does what buses may do: it stores an event twice, delivers one twice, or hands a batch over in
 * another order. Only when told to, and only for as many batches as it was told.
 */
import type { Delivery, EventBus, Handle } from "@todoke/kernel/bus";

export interface BusFaults {
  /** Batches that are published once more after they were stored. */
  publishTwice: number;
  /** Batches whose deliveries the handler sees twice. */
  deliverTwice: number;
  /** Batches handed over in the opposite order. */
  reverse: number;
}

export const steady = (): BusFaults => ({ publishTwice: 0, deliverTwice: 0, reverse: 0 });

export function flakyBus(bus: EventBus, faults: BusFaults): EventBus {
  return {
    async publish(events) {
      const outcomes = await bus.publish(events);
      if (took(faults, "publishTwice")) await bus.publish(events).catch(() => {});
      return outcomes;
    },
    subscribe: (subscription) => bus.subscribe({ ...subscription, handle: shakyHandle(subscription.handle, faults) }),
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

function shakyHandle(handle: Handle, faults: BusFaults): Handle {
  return async (deliveries, stopping) => {
    const order = took(faults, "reverse") ? deliveries.toReversed() : deliveries;
    const seen = took(faults, "deliverTwice") ? [...order, ...order.map(again)] : order;
    const outcomes = await handle(seen, stopping);
    // Each is answered as its last copy was: only then is all that was made of it over.
    return deliveries.map((delivery) => {
      const place = seen.findLastIndex(({ eventId }) => eventId === delivery.eventId);
      return outcomes[place] as (typeof outcomes)[number];
    });
  };
}

const again = (delivery: Delivery): Delivery => ({ ...delivery, redelivered: true });

function took(faults: BusFaults, what: keyof BusFaults): boolean {
  if (faults[what] === 0) return false;
  faults[what]--;
  return true;
}
