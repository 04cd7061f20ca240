/** The events that a service consumes: its inbox with subscription, redriver, gauge, retention, dead letters and routes. */
import {
  deadInboxEvents,
  type InboxOptions,
  inboxDlqTable,
  keepSubscribed,
  openInbox,
  watchDeadEvents,
} from "@todoke/kernel/inbox";
import { type RetentionPolicy, retentionOf } from "@todoke/kernel/retention";
import type { Subject } from "./emits.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import type { Runtime } from "./runtime.ts";

export interface Consumes {
  readonly subjects: readonly Subject[];
  /** The role of a process that consumes; "consumer" by default. */
  readonly role?: string;
}

/** What the events do. It reports errors to the service's own log unless it has an `onError`. */
export type EventHandler<Event> = Pick<InboxOptions<Event>, "read" | "effect" | "whenDead" | "onError">;

/** A consumer has the name of its service. */
export const inboxDeadLetters = deadInboxEvents;

export const inboxRetention = (processedKeepMs: number): readonly RetentionPolicy[] => [
  retentionOf.processedEvents(processedKeepMs),
  retentionOf.inboxAttempts(),
  retentionOf.resolvedDeadLetters(),
];

/** What operators need, in every process. */
export function watchInbox({ name, db, wakeups, hasRole, debug, use, onError, topicOf }: Runtime): void {
  if (hasRole("maintenance")) use(watchDeadEvents({ db, consumer: name, onError }));
  debug((app) => inboxRoutes(app, { db, consumer: name, onRedriven: () => wakeups.signal(topicOf(inboxDlqTable)) }));
}

export function startConsumer<Event>(runtime: Runtime, { subjects }: Consumes, handler: EventHandler<Event>): void {
  const { name: consumer, db, bus, wakeups, workers, use, onError, topicOf } = runtime;
  const { read, effect, whenDead, onError: onHandlerError = onError } = handler;
  const { attemptsMax, backoff } = workers.inbox ?? {};
  const inbox = openInbox({
    db,
    consumer,
    read,
    effect,
    ...(whenDead && { whenDead }),
    ...(attemptsMax !== undefined && { attemptsMax }),
    ...(backoff && { backoff }),
    wakeups,
    topic: topicOf(inboxDlqTable),
    onError: onHandlerError,
  });
  use(inbox.redriver).start();
  use(keepSubscribed({ bus, consumer, subjects, handle: inbox.handle, onError }));
}
