/** Handles the deliveries of one consumer. */
import type { Delivery, Envelope, Handler } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import { CommitUnknown, type Db, isUnavailable, type Tx, transaction } from "../db/index.ts";
import { Problem } from "../problem/index.ts";
import { ContextError, count, eventContext, logFields, spanNames, startSpan } from "../telemetry/index.ts";
import { noOutcome } from "../worker/in-flight-jobs.ts";
import {
  type Backoff,
  backoffMs,
  createWorker,
  dead,
  defaultBackoff,
  describeError,
  done,
  type Outcome,
  release,
  retry,
  type Worker,
  type WorkerOptions,
} from "../worker/index.ts";
import { type StorableDelivery, storable, withStorableId } from "./storable.ts";
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
  /** Runs redriven dead letters. */
  readonly redriver: Worker;
}

/** Opens the inbox of a consumer. Pass its `handle` to the bus and start its `redriver`. */
export function openInbox<Event>(options: InboxOptions<Event>): Inbox {
  const { db, consumer, decode: read, effect, attemptsMax = 10, backoff = defaultBackoff } = options;
  // Each redrive holds a connection while its effect runs: leave half of the pool to others.
  const redrivesMax = Math.max(1, Math.min(10, Math.floor((db.options.max ?? 10) / 2)));
  interface Item {
    readonly delivery: StorableDelivery;
    readonly event: Event;
  }

  const handle: Handler = async (delivered) => {
    const deliveries = delivered.map(withStorableId);
    const outcomes = new Map<StorableDelivery, Outcome>();
    const batch = batchable(deliveries);
    if (await tryBatch(batch)) for (const { delivery } of batch) outcomes.set(delivery, done);
    const delays = new Map<string, number>();
    // One at a time: if one of them kills the process, no other is counted for it.
    for (const delivery of deliveries.filter((each) => !outcomes.has(each))) {
      const delayMs = delays.get(delivery.aggregateKey);
      const outcome = delayMs === undefined ? await handleOne(delivery) : release(blockedByEarlier, delayMs);
      if ("delayMs" in outcome) delays.set(delivery.aggregateKey, outcome.delayMs);
      outcomes.set(delivery, outcome);
    }
    return deliveries.map((delivery) => outcomes.get(delivery) as Outcome);
  };

  /** The deliveries that can share a transaction: first deliveries, readable, and not behind one that is not. */
  function batchable(deliveries: readonly StorableDelivery[]): Item[] {
    const items: Item[] = [];
    const blocked = new Set<string>();
    for (const delivery of deliveries) {
      const item = delivery.redelivered || blocked.has(delivery.aggregateKey) ? undefined : tryDecode(delivery);
      if (item) items.push(item);
      else blocked.add(delivery.aggregateKey);
    }
    return items;
  }

  function tryDecode(delivery: StorableDelivery): Item | undefined {
    try {
      return { delivery, event: decodeOrThrow(delivery) };
    } catch {
      return undefined; // handleOne meets the same error and handles it.
    }
  }

  /** Applies all of them in one transaction. Returns false if each must be handled alone. */
  async function tryBatch(items: readonly Item[]): Promise<boolean> {
    if (items.length === 0) return true;
    const spans = items.map(({ delivery }) => startHandleSpan(delivery));
    try {
      // An effect of several events has no single parent span.
      const effects = await inSpan(spans.length === 1 ? spans[0] : undefined, () =>
        transaction(db, (tx) => apply(tx, items)),
      );
      count("todoke.inbox.events", { consumer, result: "effect" }, effects);
      count("todoke.inbox.events", { consumer, result: "duplicate" }, items.length - effects);
      for (const span of spans) span?.end();
      return true;
    } catch (error) {
      for (const span of spans) span?.end(describeError(error));
      options.onError?.(new Error(`${consumer}: a batch of ${items.length} events failed`, { cause: error }));
      return false;
    }
  }

  /** Marks the events and applies the new ones. Returns how many were new. */
  async function apply(tx: Tx, items: readonly Item[]): Promise<number> {
    const newIds = await store.insertProcessed(
      tx,
      consumer,
      items.map(({ delivery }) => delivery.eventId),
    );
    const events: Event[] = [];
    // A bus may deliver an event twice in one batch: only the first is new.
    for (const { delivery, event } of items) if (newIds.delete(delivery.eventId)) events.push(event);
    if (events.length > 0) await effect(tx, events);
    return events.length;
  }

  async function handleOne(delivery: StorableDelivery): Promise<Outcome> {
    try {
      const attempt = await store.countAttempt(db, consumer, delivery.eventId);
      if (attempt === undefined) {
        count("todoke.inbox.events", { consumer, result: "duplicate" });
        return done;
      }
      if (attempt > attemptsMax) return await deadLetter(delivery, attempt, await lastErrorOf(delivery, attempt));
      return await tryOne(delivery, attempt);
    } catch (error) {
      return unavailable(error);
    }
  }

  async function tryOne(delivery: StorableDelivery, attempt: number): Promise<Outcome> {
    const span = startHandleSpan(delivery);
    try {
      const item = { delivery, event: decodeOrThrow(delivery) };
      await inSpan(span, () =>
        transaction(db, async (tx) => {
          await apply(tx, [item]);
          await store.deleteAttempts(tx, consumer, delivery.eventId);
        }),
      );
      count("todoke.inbox.events", { consumer, result: "effect" });
      span?.end();
      return done;
    } catch (error) {
      span?.end(describeError(error));
      return await failed(delivery, attempt, error);
    }
  }

  /** The error of an earlier attempt to dead-letter the event; without one, every attempt ended in a crash or a stall. */
  async function lastErrorOf({ eventId }: StorableDelivery, attempt: number): Promise<string> {
    return (await store.selectLastError(db, consumer, eventId)) ?? noOutcome(attempt - 1);
  }

  function decodeOrThrow(delivery: StorableDelivery): Event {
    if (delivery.invalidId !== undefined) throw new Unreadable(`its id is not a UUID: ${delivery.invalidId}`);
    try {
      return read(delivery);
    } catch (error) {
      throw new Unreadable(`cannot be read: ${describeError(error)}`);
    }
  }

  async function failed(delivery: StorableDelivery, attempt: number, error: unknown): Promise<Outcome> {
    if (error instanceof CommitUnknown) return unavailable(error);
    if (isUnavailable(error)) {
      // If the database itself is down this fails too and the attempt stays counted, so an event that crashes the
      // database reaches its limit.
      await store.uncountAttempt(db, consumer, delivery.eventId).catch(() => {});
      return unavailable(error);
    }
    const reason = describeError(error);
    if (error instanceof Problem || error instanceof Unreadable) return await deadLetter(delivery, attempt, reason);
    if (attempt >= attemptsMax)
      return await deadLetter(delivery, attempt, `failed after ${attempt} attempts: ${reason}`);
    return retryLater(delivery, attempt, error);
  }

  function retryLater(delivery: StorableDelivery, attempt: number, error: unknown): Outcome {
    count("todoke.inbox.events", { consumer, result: "retry" });
    const fields = { ...eventContext(delivery), [logFields.consumer]: consumer, [logFields.attempt]: attempt };
    const message = `${consumer}: attempt ${attempt} of event ${delivery.eventId} failed`;
    options.onError?.(new ContextError(message, { cause: error, context: fields }));
    return retry(backoffMs(attempt, backoff), describeError(error));
  }

  /**
   * Throws if the database is unavailable, and the event is redelivered. Any other error counts as an attempt; at twice the
   * limit the event is dead-lettered without the callback.
   */
  async function deadLetter(delivery: StorableDelivery, attempt: number, reason: string): Promise<Outcome> {
    try {
      await writeDeadLetter(delivery, reason, options.onDeadLetter);
    } catch (error) {
      if (error instanceof CommitUnknown || isUnavailable(error)) throw error;
      if (attempt < 2 * attemptsMax) {
        await store.updateLastError(db, consumer, delivery.eventId, reason);
        return retryLater(delivery, attempt, new Error("the event could not be dead-lettered", { cause: error }));
      }
      const withoutCallback = `${reason}; the dead-letter callback failed and was skipped: ${describeError(error)}`;
      options.onError?.(new Error(`${consumer}: event ${delivery.eventId}: ${withoutCallback}`, { cause: error }));
      await writeDeadLetter(delivery, withoutCallback);
    }
    count("todoke.inbox.events", { consumer, result: "dead" });
    return dead(reason);
  }

  async function writeDeadLetter(
    delivery: StorableDelivery,
    reason: string,
    callback?: InboxOptions<Event>["onDeadLetter"],
  ): Promise<void> {
    const event = storable(delivery);
    await transaction(db, async (tx) => {
      if (await store.insertDead(tx, consumer, event, reason)) await callback?.(tx, event, reason);
      await store.deleteAttempts(tx, consumer, event.eventId);
    });
  }

  /** The event is not at fault. It is redelivered, and its mark shows whether it took effect. */
  function unavailable(error: unknown): Outcome {
    options.onError?.(
      new Error(`${consumer}: the database or another dependency of the effect is unavailable`, { cause: error }),
    );
    return release(describeError(error), backoffMs(1, backoff));
  }

  async function redrive(job: Claimed<Envelope>): Promise<Outcome> {
    const event = read(job);
    await transaction(db, async (tx) => {
      if (await store.markEffective(tx, consumer, job.eventId)) await effect(tx, [event]);
    });
    return done;
  }

  return {
    handle,
    redriver: createWorker<Envelope>({
      name: `${consumer} redriver`,
      db,
      claims: store.inboxDlqClaims,
      queue: consumer,
      run: (jobs) => jobs.map(redrive),
      settings: { batchMax: redrivesMax, concurrency: redrivesMax, attemptsMax, backoff },
      ...(options.wakeups && { wakeups: options.wakeups }),
      ...(options.topic !== undefined && { topic: options.topic }),
      ...(options.onError && { onError: options.onError }),
    }),
  };
}

const blockedByEarlier = "an earlier event of its aggregate has not taken effect yet";

class Unreadable extends Error {
  override readonly name = "Unreadable";
}

function startHandleSpan(delivery: Delivery) {
  if (delivery.headers.traceparent === undefined) return undefined;
  const attributes = { event_id: delivery.eventId, event_type: delivery.eventType, subject: delivery.subject };
  return startSpan(spanNames.handle, { kind: "consumer", attributes, parent: delivery.headers });
}

const inSpan = <T>(span: ReturnType<typeof startHandleSpan>, work: () => Promise<T>) =>
  span ? span.run(work) : work();
