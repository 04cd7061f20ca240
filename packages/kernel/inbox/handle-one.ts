/** Handles an event alone: counts the attempt, applies the event, and decides what follows a failure. */
import { CommitUnknown, isUnavailable, transaction } from "../db/index.ts";
import { Problem } from "../problem/index.ts";
import { ContextError, count, eventContext, logFields } from "../telemetry/index.ts";
import { noOutcome } from "../worker/in-flight-jobs.ts";
import { backoffMs, dead, describeError, done, type Outcome, release, retry } from "../worker/index.ts";
import { apply, decodeItem, inSpans, Unreadable } from "./apply.ts";
import type { InboxContext } from "./inbox.ts";
import { type StorableDelivery, storable } from "./storable.ts";
import * as store from "./store.ts";

interface Attempt<Event> {
  readonly inbox: InboxContext<Event>;
  readonly delivery: StorableDelivery;
  readonly attempt: number;
}

export async function handleOne<Event>(inbox: InboxContext<Event>, delivery: StorableDelivery): Promise<Outcome> {
  const { db, consumer, attemptsMax } = inbox;
  try {
    const attempt = await store.countAttempt(db, consumer, delivery.eventId);
    if (attempt === undefined) {
      count("todoke.inbox.events", { consumer, result: "duplicate" });
      return done;
    }
    const current = { inbox, delivery, attempt };
    if (attempt > attemptsMax) {
      // Without the error of an attempt to dead-letter it, every attempt ended in a crash or a stall.
      const lastError = await store.selectLastError(db, consumer, delivery.eventId);
      return await deadLetter(current, lastError ?? noOutcome(attempt - 1));
    }
    return await tryOne(current).catch((error) => failed(current, error));
  } catch (error) {
    return unavailable(inbox, error);
  }
}

async function tryOne<Event>({ inbox, delivery }: Attempt<Event>): Promise<Outcome> {
  const { db, consumer } = inbox;
  await inSpans([{ delivery }], async () => {
    const item = decodeItem(inbox, delivery);
    if (item instanceof Unreadable) throw item;
    await transaction(db, async (tx) => {
      await apply(inbox, tx, [item]);
      await store.deleteAttempts(tx, consumer, delivery.eventId);
    });
  });
  count("todoke.inbox.events", { consumer, result: "effect" });
  return done;
}

async function failed<Event>(current: Attempt<Event>, error: unknown): Promise<Outcome> {
  const { inbox, delivery, attempt } = current;
  if (error instanceof CommitUnknown) return unavailable(inbox, error);
  if (isUnavailable(error)) {
    // If the database is down this fails too: the attempt stays counted, so an event that crashes it reaches its limit.
    await store.uncountAttempt(inbox.db, inbox.consumer, delivery.eventId).catch(() => {});
    return unavailable(inbox, error);
  }
  const reason = describeError(error);
  if (error instanceof Problem || error instanceof Unreadable) return deadLetter(current, reason);
  if (attempt < inbox.attemptsMax) return retryLater(current, error);
  return deadLetter(current, `failed after ${attempt} attempts: ${reason}`);
}

/** The event is not at fault. It is redelivered, and its mark shows whether it took effect. */
function unavailable<Event>({ consumer, backoff, onError }: InboxContext<Event>, error: unknown): Outcome {
  const message = `${consumer}: the database or another dependency of the effect is unavailable`;
  onError?.(new Error(message, { cause: error }));
  return release(describeError(error), backoffMs(1, backoff));
}

function retryLater<Event>({ inbox, delivery, attempt }: Attempt<Event>, error: unknown): Outcome {
  const { consumer, backoff, onError } = inbox;
  count("todoke.inbox.events", { consumer, result: "retry" });
  const context = { ...eventContext(delivery), [logFields.consumer]: consumer, [logFields.attempt]: attempt };
  const message = `${consumer}: attempt ${attempt} of event ${delivery.eventId} failed`;
  onError?.(new ContextError(message, { cause: error, context }));
  return retry(backoffMs(attempt, backoff), describeError(error));
}

/**
 * Throws if the database is unavailable, and the event is redelivered. Any other error counts as an attempt; at twice the
 * limit the event is dead-lettered without the callback.
 */
async function deadLetter<Event>(current: Attempt<Event>, reason: string): Promise<Outcome> {
  const { inbox, delivery, attempt } = current;
  const { db, consumer, attemptsMax, onDeadLetter, onError } = inbox;
  const event = storable(delivery);
  const write = (why: string, callback?: typeof onDeadLetter) =>
    transaction(db, async (tx) => {
      if (await store.insertDead(tx, consumer, event, why)) await callback?.(tx, event, why);
      await store.deleteAttempts(tx, consumer, event.eventId);
    });
  try {
    await write(reason, onDeadLetter);
  } catch (error) {
    if (error instanceof CommitUnknown || isUnavailable(error)) throw error;
    if (attempt < 2 * attemptsMax) {
      await store.updateLastError(db, consumer, delivery.eventId, reason);
      return retryLater(current, new Error("the event could not be dead-lettered", { cause: error }));
    }
    const withoutCallback = `${reason}; the dead-letter callback failed and was skipped: ${describeError(error)}`;
    onError?.(new Error(`${consumer}: event ${delivery.eventId}: ${withoutCallback}`, { cause: error }));
    await write(withoutCallback);
  }
  count("todoke.inbox.events", { consumer, result: "dead" });
  return dead(reason);
}
