/**
 * The inbox: an event takes effect once per consumer, however often it arrives.
 *
 * The mark "processed", the effect and any follow-up event are one transaction, and the bus hears "done" only after its
 * commit. Events are handled in batches; when a batch fails each is handled alone, so that one bad event fails alone.
 * An event that comes again has its attempt counted, in a commit of its own, before it is touched: what kills the process
 * comes to an end too. At the limit, or at once when it can never succeed, the whole event goes to `inbox_dlq`, from
 * where it can be redriven.
 */

export { type Inbox, type InboxOptions, openInbox } from "./inbox.ts";
export { type KeepSubscribedOptions, keepSubscribed } from "./keep-subscribed.ts";
export { type DeadEvent, deadEvents, deadInboxEvents, inboxDlqTable, redriveDead } from "./store.ts";
export { watchDeadEvents } from "./watch.ts";
