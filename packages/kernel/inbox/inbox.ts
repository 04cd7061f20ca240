/** Handles deliveries for one consumer. */
import type { Delivery, Envelope, Handle } from "../bus/index.ts";
import type { Claimed } from "../claims/index.ts";
import { CommitUnknown, type Db, isUnavailable, type Tx, transaction } from "../db/index.ts";
import { Problem } from "../problem/index.ts";
import { aboutEvent, count, ErrorAbout, logFields, spanNames, startSpan } from "../telemetry/index.ts";
import {
  type Backoff,
  backoffMs,
  dead,
  defaultBackoff,
  describeError,
  done,
  type Outcome,
  release,
  retry,
  type Worker,
  type WorkerOptions,
  worker,
} from "../worker/index.ts";
import { type Arrival, storable, withStorableId } from "./storable.ts";
import * as store from "./store.ts";

export interface InboxOptions<Event> extends Pick<WorkerOptions<Envelope>, "wakeups" | "topic" | "onError"> {
  readonly db: Db;
  readonly consumer: string;
  /** Makes sense of the bytes. A throw means that nobody ever will: the event goes to the DLQ at once. */
  readonly read: (delivery: Envelope) => Event;
  /**
   * What the events do, in the transaction that marks them processed. It sees only events that are new to this consumer,
   * in their order, one or many. A Problem is final; any other error is tried again. Use `tx` for every statement: an
   * effect that takes a second connection from `db` can wait for one that other effects hold while they wait as well.
   */
  readonly effect: (tx: Tx, events: readonly Event[]) => Promise<void>;
  /**
   * What follows from an event being dead-lettered, in the same transaction; once, though it may be redriven and fail
   * again. It gets the event as `inbox_dlq` stores it, because the event may be dead for being unreadable. It has as many
   * attempts as the effect; if it fails in all of them, the event is dead-lettered without it.
   */
  readonly whenDead?: (tx: Tx, event: Envelope, why: string) => Promise<void>;
  readonly attemptsMax?: number;
  readonly backoff?: Backoff;
}

export interface Inbox {
  /** For EventBus.subscribe. */
  readonly handle: Handle;
  /** Works the dead letters that somebody asked to try again. */
  readonly redriver: Worker;
}

export function openInbox<Event>(options: InboxOptions<Event>): Inbox {
  const { db, consumer, read, effect, attemptsMax = 10, backoff = defaultBackoff } = options;
  // Each holds a connection while its effect runs: half of the pool is left to everybody else.
  const redrivesMax = Math.max(1, Math.min(10, Math.floor((db.options.max ?? 10) / 2)));
  interface Item {
    readonly delivery: Arrival;
    readonly event: Event;
  }

  const handle: Handle = async (delivered) => {
    const deliveries = delivered.map(withStorableId);
    const outcomes = new Map<Arrival, Outcome>();
    const fresh = straightforward(deliveries);
    if (await tookEffect(fresh)) for (const { delivery } of fresh) outcomes.set(delivery, done);
    const stuck = new Map<string, number>();
    // One at a time: should one of them kill the process, no other is blamed for it.
    for (const delivery of deliveries.filter((each) => !outcomes.has(each))) {
      const waitMs = stuck.get(delivery.aggregateKey);
      const outcome = waitMs === undefined ? await handleAlone(delivery) : release(behindAnother, waitMs);
      if ("inMs" in outcome) stuck.set(delivery.aggregateKey, outcome.inMs);
      outcomes.set(delivery, outcome);
    }
    return deliveries.map((delivery) => outcomes.get(delivery) as Outcome);
  };

  /** Those that can go in one batch: new, readable, and not behind one of the same aggregate that cannot. */
  function straightforward(deliveries: readonly Arrival[]): Item[] {
    const items: Item[] = [];
    const held = new Set<string>();
    for (const delivery of deliveries) {
      const item = delivery.redelivered || held.has(delivery.aggregateKey) ? undefined : readable(delivery);
      if (item) items.push(item);
      else held.add(delivery.aggregateKey);
    }
    return items;
  }

  function readable(delivery: Arrival): Item | undefined {
    try {
      return { delivery, event: readOrRefuse(delivery) };
    } catch {
      return undefined; // handleAlone meets the same error and deals with it.
    }
  }

  /** The straight way: all of them in one transaction. False when each has to be looked at alone. */
  async function tookEffect(items: readonly Item[]): Promise<boolean> {
    if (items.length === 0) return true;
    const spans = items.map(({ delivery }) => spanOf(delivery));
    try {
      // An effect of many causes is the child of none; of one, it is the child of that one.
      const effects = await inSpan(spans.length === 1 ? spans[0] : undefined, () =>
        transaction(db, (tx) => takeEffect(tx, items)),
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

  async function takeEffect(tx: Tx, items: readonly Item[]): Promise<number> {
    const unseen = await store.insertProcessed(
      tx,
      consumer,
      items.map(({ delivery }) => delivery.eventId),
    );
    const events: Event[] = [];
    // A bus may deliver an event twice in one batch: the first one takes the mark.
    for (const { delivery, event } of items) if (unseen.delete(delivery.eventId)) events.push(event);
    if (events.length > 0) await effect(tx, events);
    return events.length;
  }

  async function handleAlone(delivery: Arrival): Promise<Outcome> {
    try {
      const attempt = await store.countAttempt(db, consumer, delivery.eventId);
      if (attempt === undefined) {
        count("todoke.inbox.events", { consumer, result: "duplicate" });
        return done;
      }
      if (attempt > attemptsMax) return await bury(delivery, attempt, await lastErrorOf(delivery, attempt));
      return await tryAlone(delivery, attempt);
    } catch (error) {
      return unavailable(error);
    }
  }

  async function tryAlone(delivery: Arrival, attempt: number): Promise<Outcome> {
    const span = spanOf(delivery);
    try {
      const item = { delivery, event: readOrRefuse(delivery) };
      await inSpan(span, () =>
        transaction(db, async (tx) => {
          await takeEffect(tx, [item]);
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

  /** The event was to be dead-lettered and was not, or nobody lived to say what it ended with. */
  async function lastErrorOf({ eventId }: Arrival, attempt: number): Promise<string> {
    return (await store.selectLastError(db, consumer, eventId)) ?? gaveUp(attempt - 1);
  }

  function readOrRefuse(delivery: Arrival): Event {
    if (delivery.invalidId !== undefined) throw new Unreadable(`its id is not a UUID: ${delivery.invalidId}`);
    try {
      return read(delivery);
    } catch (error) {
      throw new Unreadable(`cannot be read: ${describeError(error)}`);
    }
  }

  async function failed(delivery: Arrival, attempt: number, error: unknown): Promise<Outcome> {
    if (error instanceof CommitUnknown) return unavailable(error);
    if (isUnavailable(error)) {
      // Where the database itself is away this fails too, and the attempt stays counted: what brings it down comes to an end.
      await store.giveBackAttempt(db, consumer, delivery.eventId).catch(() => {});
      return unavailable(error);
    }
    const why = describeError(error);
    if (error instanceof Problem || error instanceof Unreadable) return await bury(delivery, attempt, why);
    if (attempt >= attemptsMax) return await bury(delivery, attempt, `gave up after ${attempt} attempts: ${why}`);
    return retryLater(delivery, attempt, error);
  }

  function retryLater(delivery: Arrival, attempt: number, error: unknown): Outcome {
    count("todoke.inbox.events", { consumer, result: "retry" });
    const about = { ...aboutEvent(delivery), [logFields.consumer]: consumer, [logFields.attempt]: attempt };
    options.onError?.(
      new ErrorAbout(`${consumer}: event ${delivery.eventId}, attempt ${attempt}`, { cause: error, about }),
    );
    return retry(backoffMs(attempt, backoff), describeError(error));
  }

  /**
   * A database that is unavailable ends this with a throw, and the event comes again. Any other error is a refusal, which no
   * wait ends by itself: it is counted, and in the end the event is dead-lettered without `whenDead`.
   */
  async function bury(delivery: Arrival, attempt: number, why: string): Promise<Outcome> {
    try {
      await deadLetter(delivery, why, options.whenDead);
    } catch (error) {
      if (error instanceof CommitUnknown || isUnavailable(error)) throw error;
      if (attempt < 2 * attemptsMax) {
        await store.updateLastError(db, consumer, delivery.eventId, why);
        return retryLater(delivery, attempt, new Error("the event could not be dead-lettered", { cause: error }));
      }
      const withoutWhenDead = `${why}; whenDead failed and was left out: ${describeError(error)}`;
      options.onError?.(new Error(`${consumer}: event ${delivery.eventId}: ${withoutWhenDead}`, { cause: error }));
      await deadLetter(delivery, withoutWhenDead);
    }
    count("todoke.inbox.events", { consumer, result: "dead" });
    return dead(why);
  }

  async function deadLetter(delivery: Arrival, why: string, whenDead?: InboxOptions<Event>["whenDead"]): Promise<void> {
    const event = storable(delivery);
    await transaction(db, async (tx) => {
      if (await store.insertDead(tx, consumer, event, why)) await whenDead?.(tx, event, why);
      await store.deleteAttempts(tx, consumer, event.eventId);
    });
  }

  /** Nothing is known to be wrong with the event: it comes again, and the inbox finds out what took effect. */
  function unavailable(error: unknown): Outcome {
    options.onError?.(new Error(`${consumer}: the database, or what else the effect needs, is away`, { cause: error }));
    return release(describeError(error), backoffMs(1, backoff));
  }

  async function redrive(job: Claimed<Envelope>): Promise<Outcome> {
    const event = read(job);
    await transaction(db, async (tx) => {
      if (await store.reviveProcessed(tx, consumer, job.eventId)) await effect(tx, [event]);
    });
    return done;
  }

  return {
    handle,
    redriver: worker<Envelope>({
      name: `${consumer} redriver`,
      db,
      claims: store.deadLetters,
      queue: consumer,
      run: (jobs) => jobs.map(redrive),
      settings: { batchMax: redrivesMax, concurrency: redrivesMax, attemptsMax, backoff },
      ...(options.wakeups && { wakeups: options.wakeups }),
      ...(options.topic !== undefined && { topic: options.topic }),
      ...(options.onError && { onError: options.onError }),
    }),
  };
}

const behindAnother = "an event of the same aggregate before it has not taken effect yet";

class Unreadable extends Error {
  override readonly name = "Unreadable";
}

const gaveUp = (attempts: number) =>
  `gave up after ${attempts} attempts: the last ended without an outcome (a crash or a stall)`;

function spanOf(delivery: Delivery) {
  if (delivery.headers.traceparent === undefined) return undefined;
  const attributes = { event_id: delivery.eventId, event_type: delivery.eventType, subject: delivery.subject };
  return startSpan(spanNames.handle, { kind: "consumer", attributes, parent: delivery.headers });
}

const inSpan = <T>(span: ReturnType<typeof spanOf>, work: () => Promise<T>) => (span ? span.run(work) : work());
