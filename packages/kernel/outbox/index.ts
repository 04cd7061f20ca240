/**
 * The outbox: an event exists if and only if its state change committed, and it reaches the bus at least once, in the
 * order of its aggregate's versions.
 *
 * `append` takes a `Tx`, so an event cannot be written outside the transaction that is its cause; the relay, and nothing
 * else, publishes. What can never be published ends as FAILED and parks its aggregate, not the others, until it is redriven.
 */
export { type Outbox, openOutbox } from "./append.ts";
export { type EventsSql, eventRows, insertEventRowsSql, insertEventsSql, type NewEvent } from "./insert-events-sql.ts";
export { type OutboxMetrics, outboxMetrics } from "./metrics.ts";
export { type RelayOptions, relay } from "./relay.ts";
export {
  deadOutboxEvents,
  type FailedEvent,
  failedEvents,
  outboxBacklog,
  outboxEvents,
  outboxTable,
  redriveEvents,
} from "./store.ts";
