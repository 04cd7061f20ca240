/**
 * The outbox: an event exists if and only if its state change committed. It reaches the bus at least once, in the order of
 * its aggregate's versions.
 *
 * Events are written by the statement that changes the state (`insertEventsSql`) or in its transaction (`append`, which takes
 * a `Tx`). Only the relay publishes. An event that can never be published is FAILED and parks its aggregate, and no other,
 * until it is redriven.
 */
export { type Outbox, openOutbox } from "./append.ts";
export { type EventsSql, eventRows, insertEventRowsSql, insertEventsSql, type NewEvent } from "./insert-events-sql.ts";
export { type OutboxMetrics, outboxMetrics } from "./metrics.ts";
export { createRelay, type RelayOptions } from "./relay.ts";
export {
  outboxBacklog,
  outboxClaims,
  outboxDeadLetters,
  outboxTable,
  type SubjectFilter,
} from "./store.ts";
