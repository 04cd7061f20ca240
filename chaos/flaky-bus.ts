/** A bus that stores or delivers events twice, or reverses a batch, for a given number of batches. */
import type { Delivery, EventBus, Handler, TransactionalHandler, TransactionalPublisher } from "@todoke/kernel/bus";

export interface BusFaults {
  /** Batches that are published twice. */
  publishTwice: number;
  /** Batches that are delivered twice. */
  deliverTwice: number;
  /** Batches that are delivered in reverse order. */
  reverse: number;
}

export const noFaults = (): BusFaults => ({ publishTwice: 0, deliverTwice: 0, reverse: 0 });

/** With `claimsOnly`, the bus hides that it is in the database of the service, as another bus or an older build would. */
export function flakyBus(bus: EventBus, faults: BusFaults, { claimsOnly = false } = {}): EventBus {
  return {
    async publish(events) {
      const outcomes = await bus.publish(events);
      if (consumeFault(faults, "publishTwice")) await bus.publish(events).catch(() => {});
      return outcomes;
    },
    async openPublisher(db) {
      const publisher = claimsOnly ? undefined : await bus.openPublisher?.(db);
      return publisher && flakyPublisher(publisher, faults);
    },
    subscribe({ handle, inTransaction, ...subscription }) {
      return bus.subscribe({
        ...subscription,
        handle: flakyHandler(handle, faults),
        ...(inTransaction && !claimsOnly && { inTransaction: flakyTransactionalHandler(inTransaction, faults) }),
      });
    },
    check: () => bus.check(),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

const flakyPublisher = (publisher: TransactionalPublisher, faults: BusFaults): TransactionalPublisher => ({
  ...publisher,
  async publish(tx, events) {
    await publisher.publish(tx, events);
    if (consumeFault(faults, "publishTwice")) await publisher.publish(tx, events);
  },
});

const flakyTransactionalHandler = ({ db, handle }: TransactionalHandler, faults: BusFaults): TransactionalHandler => ({
  db,
  handle: (tx, deliveries) => handle(tx, seenDeliveries(deliveries, faults)),
});

function flakyHandler(handle: Handler, faults: BusFaults): Handler {
  return async (deliveries, stopping) => {
    const seen = seenDeliveries(deliveries, faults);
    const outcomes = await handle(seen, stopping);
    // The outcome of the last copy counts, because only then is the delivery handled completely.
    return deliveries.map((delivery) => {
      const index = seen.findLastIndex(({ eventId }) => eventId === delivery.eventId);
      return outcomes[index] as (typeof outcomes)[number];
    });
  };
}

function seenDeliveries(deliveries: readonly Delivery[], faults: BusFaults): readonly Delivery[] {
  const order = consumeFault(faults, "reverse") ? deliveries.toReversed() : deliveries;
  return consumeFault(faults, "deliverTwice") ? [...order, ...order.map(toRedelivery)] : order;
}

const toRedelivery = (delivery: Delivery): Delivery => ({ ...delivery, redelivered: true });

function consumeFault(faults: BusFaults, name: keyof BusFaults): boolean {
  if (faults[name] === 0) return false;
  faults[name]--;
  return true;
}
