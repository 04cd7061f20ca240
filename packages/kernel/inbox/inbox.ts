/** Handles the deliveries of one consumer: in batches, and one at a time where a batch fails. */
import type { Delivery, Envelope, Handler, TransactionalHandler } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import { afterCommit, type Db, type Tx, transaction } from "../db/index.ts";
import { count } from "../telemetry/index.ts";
import type { Worker, WorkerOptions } from "../worker/index.ts";
import { type Backoff, createWorker, defaultBackoff, done, type Outcome, release } from "../worker/index.ts";
import { apply, applyNew, decodeItem, type Item, inSpans, Unreadable } from "./apply.ts";
import { handleOne } from "./handle-one.ts";
import { type StorableDelivery, withStorableId } from "./storable.ts";
import * as store from "./store.ts";

export interface InboxOptions<Event> extends Pick<WorkerOptions<Envelope>, "wakeups" | "topic" | "onError"> {
  readonly db: Db;
  readonly consumer: string;
  /** Decodes an event. If it throws, the event is dead-lettered at once. */
  readonly decode: (delivery: Envelope) => Event;
  /**
   * Applies events in the transaction that marks them processed. It gets one or more events that are new to this consumer,
   * in their order. A Problem dead-letters the event; any other error is retried. Run every statement on `tx`: an effect
   * that takes a second connection can deadlock with other effects on the pool.
   */
  readonly effect: (tx: Tx, events: readonly Event[]) => Promise<void>;
  /**
   * Runs in the transaction that dead-letters an event, once per event even if it is redriven and fails again. It gets the
   * event as `inbox_dlq` stores it, because the event may be unreadable. It has as many attempts as the effect; if all of
   * them fail, the event is dead-lettered without it.
   */
  readonly onDeadLetter?: (tx: Tx, event: Envelope, reason: string) => Promise<void>;
  readonly attemptsMax?: number;
  readonly backoff?: Backoff;
}

export interface Inbox {
  /** For EventBus.subscribe. */
  readonly handle: Handler;
  /** The same, for a bus in the database of the inbox. */
  readonly inTransaction: TransactionalHandler;
  /** Runs redriven dead letters. */
  readonly redriver: Worker;
}

/** The options with their defaults. */
export type InboxContext<Event> = InboxOptions<Event> & Required<Pick<InboxOptions<Event>, "attemptsMax" | "backoff">>;

/** Opens the inbox of a consumer. Pass its `handle` to the bus and start its `redriver`. */
export function openInbox<Event>(options: InboxOptions<Event>): Inbox {
  const { attemptsMax = 10, backoff = defaultBackoff } = options;
  const inbox = { ...options, attemptsMax, backoff };
  return {
    handle: (delivered) => handleAll(inbox, delivered),
    inTransaction: { db: inbox.db, handle: (tx, delivered) => applyAll(inbox, tx, delivered) },
    redriver: createRedriver(inbox),
  };
}

const blockedByEarlier = "an earlier event of its aggregate has not taken effect yet";

async function handleAll<Event>(inbox: InboxContext<Event>, delivered: readonly Delivery[]): Promise<Outcome[]> {
  const deliveries = delivered.map(withStorableId);
  const outcomes = new Map<StorableDelivery, Outcome>();
  const batch = batchable(inbox, deliveries);
  if (await tryBatch(inbox, batch)) for (const { delivery } of batch) outcomes.set(delivery, done);
  const delays = new Map<string, number>();
  // One at a time: if one of them kills the process, no other is counted for it.
  for (const delivery of deliveries.filter((each) => !outcomes.has(each))) {
    const delayMs = delays.get(delivery.aggregateKey);
    const outcome = delayMs === undefined ? await handleOne(inbox, delivery) : release(blockedByEarlier, delayMs);
    if ("delayMs" in outcome) delays.set(delivery.aggregateKey, outcome.delayMs);
    outcomes.set(delivery, outcome);
  }
  return deliveries.map((delivery) => outcomes.get(delivery) as Outcome);
}

/** Applies all of them in the transaction that acks them. Rejects if one of them cannot be read, or is not new. */
async function applyAll<Event>(inbox: InboxContext<Event>, tx: Tx, delivered: readonly Delivery[]): Promise<void> {
  const { consumer } = inbox;
  const items = delivered.map((delivery) => {
    const item = decodeItem(inbox, withStorableId(delivery));
    if (item instanceof Unreadable) throw item;
    return item;
  });
  await inSpans(items, () => applyNew(inbox, tx, items));
  afterCommit(tx, () => count("todoke.inbox.events", { consumer, result: "effect" }, items.length));
}

/** The deliveries that can share a transaction: first deliveries, readable, and not behind one that is not. */
function batchable<Event>(inbox: InboxContext<Event>, deliveries: readonly StorableDelivery[]): Item<Event>[] {
  const items: Item<Event>[] = [];
  const blocked = new Set<string>();
  for (const delivery of deliveries) {
    const item = delivery.redelivered || blocked.has(delivery.aggregateKey) ? undefined : decodeItem(inbox, delivery);
    if (item && !(item instanceof Unreadable)) items.push(item);
    else blocked.add(delivery.aggregateKey);
  }
  return items;
}

/** Applies all of them in one transaction. Returns false if each must be handled alone. */
async function tryBatch<Event>(inbox: InboxContext<Event>, items: readonly Item<Event>[]): Promise<boolean> {
  const { db, consumer, onError } = inbox;
  if (items.length === 0) return true;
  try {
    const effects = await inSpans(items, () => transaction(db, (tx) => apply(inbox, tx, items)));
    count("todoke.inbox.events", { consumer, result: "effect" }, effects);
    count("todoke.inbox.events", { consumer, result: "duplicate" }, items.length - effects);
    return true;
  } catch (error) {
    onError?.(new Error(`${consumer}: a batch of ${items.length} events failed`, { cause: error }));
    return false;
  }
}

function createRedriver<Event>(inbox: InboxContext<Event>): Worker {
  const { db, consumer, decode, effect, attemptsMax, backoff } = inbox;
  // Each redrive holds a connection while its effect runs: leave half of the pool to others.
  const redrivesMax = Math.max(1, Math.min(10, Math.floor((db.options.max ?? 10) / 2)));

  async function redrive(job: Claimed<Envelope>): Promise<Outcome> {
    const event = decode(job);
    await transaction(db, async (tx) => {
      if (await store.markEffective(tx, consumer, job.eventId)) await effect(tx, [event]);
    });
    return done;
  }

  return createWorker<Envelope>({
    ...inbox,
    name: `${consumer} redriver`,
    claims: store.inboxDlqClaims,
    queue: consumer,
    run: (jobs) => jobs.map(redrive),
    settings: { batchMax: redrivesMax, concurrency: redrivesMax, attemptsMax, backoff },
  });
}
