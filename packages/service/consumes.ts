/** The events that a service consumes: its inbox with subscription, redriver, gauge, retention, dead letters and routes. */
import {
  type InboxOptions,
  inboxDlqTable,
  observeDeadEvents,
  openInbox,
  subscribeWithRetry,
} from "@todoke/kernel/inbox";
import { type RetentionPolicy, retentionPolicies } from "@todoke/kernel/retention";
import type { Subject } from "./buses.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import type { RetentionSettings } from "./retention-settings.ts";
import type { Runtime } from "./runtime.ts";

export interface Consumes {
  readonly subjects: readonly Subject[];
  /** The role of a process that consumes; "consumer" by default. */
  readonly role?: string;
}

/** The inbox of the events. It reports errors to the service's own log unless it has an `onError`. */
export type EventHandler<Event> = Pick<InboxOptions<Event>, "decode" | "effect" | "onDeadLetter" | "onError">;

export const inboxRetention = ({ processedMs, resolvedMs }: RetentionSettings): readonly RetentionPolicy[] => [
  retentionPolicies.processedEvents(processedMs),
  retentionPolicies.inboxAttempts(processedMs),
  retentionPolicies.resolvedDeadLetters(resolvedMs),
];

/** For operators, in every process. */
export function watchInbox({ name, db, wakeups, hasRole, debug, use, onError, topicOf }: Runtime): void {
  if (hasRole("maintenance")) use(observeDeadEvents({ db, consumer: name, onError }));
  debug((app) => inboxRoutes(app, { db, consumer: name, onRedriven: () => wakeups.signal(topicOf(inboxDlqTable)) }));
}

/** One inbox, and a subscription at each bus that has subjects of the service. */
export function startConsumer<Event>(runtime: Runtime, handler: EventHandler<Event>): void {
  const { name: consumer, db, buses, wakeups, workers, use, onError, topicOf } = runtime;
  const { decode, effect, onDeadLetter, onError: onHandlerError = onError } = handler;
  const { attemptsMax, backoff } = workers.inbox ?? {};
  const inbox = openInbox({
    db,
    consumer,
    decode,
    effect,
    ...(onDeadLetter && { onDeadLetter }),
    ...(attemptsMax !== undefined && { attemptsMax }),
    ...(backoff && { backoff }),
    wakeups,
    topic: topicOf(inboxDlqTable),
    onError: onHandlerError,
  });
  use(inbox.redriver).start();
  const { handle, inTransaction } = inbox;
  for (const { bus, consumes: subjects, onError: onBusError } of buses)
    if (subjects.length > 0)
      use(subscribeWithRetry({ bus, consumer, subjects, handle, inTransaction, onError: onBusError }));
}
