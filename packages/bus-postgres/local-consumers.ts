/** The consumers of this process that handle events in their own transactions. A relay may publish in such a transaction. */
import type { Delivery, Envelope } from "@todoke/kernel/bus";
import type { Db, Tx } from "@todoke/kernel/db";

export interface LocalConsumer {
  /** Database, user and schema of the bus: transactions of a publisher that has the same ones have the same rights. */
  readonly database: string;
  readonly consumer: string;
  readonly subjects: readonly string[];
  readonly db: Db;
  readonly batchMax: number;
  readonly handle: (tx: Tx, deliveries: readonly Delivery[]) => Promise<void>;
}

const consumers = new Map<LocalConsumer, Set<Promise<void>>>();

/** Disposing it waits for handlers that run. */
export function addLocalConsumer(added: LocalConsumer): AsyncDisposable {
  const running = new Set<Promise<void>>();
  consumers.set(added, running);
  return {
    async [Symbol.asyncDispose]() {
      consumers.delete(added);
      await Promise.allSettled(running);
    },
  };
}

export function findLocalConsumer(database: string, subject: string): LocalConsumer | undefined {
  return [...consumers.keys()].find((each) => each.database === database && each.subjects.includes(subject));
}

/** Handles new events, at most `batchMax` at once. Rejects if the consumer has been disposed. */
export async function handleLocally(consumer: LocalConsumer, tx: Tx, events: readonly Envelope[]): Promise<void> {
  const running = consumers.get(consumer);
  if (!running) throw new Error(`${consumer.consumer} is stopping`);
  const handled = handleBatches(consumer, tx, events);
  running.add(handled);
  try {
    await handled;
  } finally {
    running.delete(handled);
  }
}

async function handleBatches({ handle, batchMax }: LocalConsumer, tx: Tx, events: readonly Envelope[]): Promise<void> {
  for (let from = 0; from < events.length; from += batchMax)
    await handle(
      tx,
      events.slice(from, from + batchMax).map((event) => ({ ...event, redelivered: false })),
    );
}
