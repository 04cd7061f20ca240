/**
 * The inbox: an event takes effect once per consumer, however often it is delivered.
 *
 * The mark in `processed_events`, the effect and any follow-up event are one transaction, and the event is acked after its
 * commit. Events are handled in batches. If a batch fails, each event is handled alone, so that a bad event fails alone. The
 * attempt of a redelivered event is counted in a commit of its own before the event is handled, so that an event that
 * kills its process reaches the limit too. At the limit, or at once if it can never succeed, an event is dead-lettered to
 * `inbox_dlq` with its payload, and can be redriven.
 */

export { observeDeadEvents } from "./dead-event-gauge.ts";
export { type Inbox, type InboxOptions, openInbox } from "./inbox.ts";
export { inboxDeadLetters, inboxDlqTable, readInboxDelays } from "./store.ts";
export { type SubscribeWithRetryOptions, subscribeWithRetry } from "./subscribe-with-retry.ts";
