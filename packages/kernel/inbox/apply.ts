/** Applies events in the transaction that marks them processed, so that each takes effect once. */
import type { Delivery } from "../bus/index.ts";
import type { Tx } from "../db/index.ts";
import { spanNames, startSpan } from "../telemetry/index.ts";
import { describeError } from "../worker/index.ts";
import type { InboxContext } from "./inbox.ts";
import type { StorableDelivery } from "./storable.ts";
import * as store from "./store.ts";

/** A delivery and its decoded event. */
export interface Item<Event> {
  readonly delivery: StorableDelivery;
  readonly event: Event;
}

export class Unreadable extends Error {
  override readonly name = "Unreadable";
}

export function decodeItem<Event>(
  { decode }: InboxContext<Event>,
  delivery: StorableDelivery,
): Item<Event> | Unreadable {
  if (delivery.invalidId !== undefined) return new Unreadable(`its id is not a UUID: ${delivery.invalidId}`);
  try {
    return { delivery, event: decode(delivery) };
  } catch (error) {
    return new Unreadable(`cannot be read: ${describeError(error)}`);
  }
}

/** Marks the events and applies the new ones. Returns how many were new. */
export async function apply<Event>(inbox: InboxContext<Event>, tx: Tx, items: readonly Item<Event>[]): Promise<number> {
  const eventIds = items.map(({ delivery }) => delivery.eventId);
  const newIds = await store.insertProcessed(tx, inbox.consumer, eventIds);
  const events: Event[] = [];
  // A bus may deliver an event twice in one batch: only the first is new.
  for (const { delivery, event } of items) if (newIds.delete(delivery.eventId)) events.push(event);
  if (events.length > 0) await inbox.effect(tx, events);
  return events.length;
}

/** The same for events that are new. Rejects if one of them is not: then its duplicate is ignored by `apply`, outside this transaction. */
export async function applyNew<Event>(
  inbox: InboxContext<Event>,
  tx: Tx,
  items: readonly Item<Event>[],
): Promise<void> {
  const eventIds = items.map(({ delivery }) => delivery.eventId);
  await store.insertNewlyProcessed(tx, inbox.consumer, eventIds);
  await inbox.effect(
    tx,
    items.map(({ event }) => event),
  );
}

/** Runs the work in a span of every delivery. An effect of several events has no single parent span. */
export async function inSpans<T>(items: readonly { delivery: Delivery }[], work: () => Promise<T>): Promise<T> {
  const spans = items.map(({ delivery }) => startHandleSpan(delivery));
  try {
    const result = await (spans.length === 1 && spans[0] ? spans[0].run(work) : work());
    for (const span of spans) span?.end();
    return result;
  } catch (error) {
    for (const span of spans) span?.end(describeError(error));
    throw error;
  }
}

function startHandleSpan(delivery: Delivery) {
  if (delivery.headers.traceparent === undefined) return undefined;
  const attributes = { event_id: delivery.eventId, event_type: delivery.eventType, subject: delivery.subject };
  return startSpan(spanNames.handle, { kind: "consumer", attributes, parent: delivery.headers });
}
