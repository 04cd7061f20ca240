/**
 * The event bus: a port that adapters implement.
 *
 * Every adapter guarantees the following; the conformance suite tests each of them on a real message broker:
 *  - `publish` returns "done" for an event once the broker has stored it;
 *  - every consumer gets every event of its subjects at least once, from its first subscription on (and earlier events, if
 *    the adapter has `replaysToNewConsumers`);
 *  - processes that subscribe under one consumer name share its events;
 *  - an event is redelivered until it is settled as "done" or "dead", also after a lost ack or a killed process;
 *  - first deliveries of one aggregate are in publish order; headers and payload arrive unchanged.
 */
import type { Db, Tx } from "../db/index.ts";
import type { Outcome } from "../worker/outcome.ts";

/** An event with its routing metadata. Field names follow the columns of the outbox. */
export interface Envelope {
  /** UUID v7, the same in every retry: brokers and inboxes deduplicate by it. */
  readonly eventId: string;
  /** "EntitlementGranted". */
  readonly eventType: string;
  /** Where it is published: "entitlement.events". */
  readonly subject: string;
  /** The entity whose events keep their order. */
  readonly aggregateKey: string;
  /** RFC 3339, UTC. */
  readonly occurredAt: string;
  /** Trace context and other metadata; lower-case names, printable ASCII values. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
}

/** An event as a consumer receives it. */
export interface Delivery extends Envelope {
  /** True if it may have been delivered before: an earlier delivery may have killed its process. */
  readonly redelivered: boolean;
}

/** Returns the outcomes in input order. It gets at most `batchMax` deliveries; if it rejects, all of them are retried. */
export type Handler = (deliveries: readonly Delivery[], stopping: AbortSignal) => Promise<readonly Outcome[]>;

export interface Subscription {
  /** The durable name of the consumer. Its position in the stream outlives every process. */
  readonly consumer: string;
  readonly subjects: readonly string[];
  readonly handle: Handler;
  /** The most deliveries in one call. They are passed on as they arrive; a batch is never waited for. */
  readonly batchMax?: number;
  /** Batches handled at once. With 1, events of an aggregate are also handled in order. */
  readonly concurrency?: number;
  /** Used instead of `handle` for first deliveries, if the bus is in the same database. */
  readonly inTransaction?: TransactionalHandler;
}

/** Handles deliveries in the transaction that acks them. */
export interface TransactionalHandler {
  readonly db: Db;
  /** If it rejects, the transaction is rolled back, and the deliveries are passed to `handle`. */
  readonly handle: (tx: Tx, deliveries: readonly Delivery[]) => Promise<void>;
}

/** Publishes in a transaction of the publisher: the events are stored if and only if it commits. */
export interface TransactionalPublisher {
  /** Two events of one aggregate may be in one call. Rejects if one of them cannot be stored. */
  publish(tx: Tx, events: readonly Envelope[]): Promise<void>;
  /** A consumer in this process that can publish and handle events like the last ones in one transaction, if there is one. */
  readonly findConsumer?: () => PublishingConsumer | undefined;
}

/** Publishes events in a transaction of their consumer, which handles them there: no delivery has to be stored for it. */
export interface PublishingConsumer {
  /** Its transactions may write to the tables of the publisher, */
  readonly db: Db;
  /** which are in this schema. */
  readonly schema: string;
  /** Rejects if one of the events cannot be stored, or handled. */
  publish(tx: Tx, events: readonly Envelope[]): Promise<void>;
}

export interface EventBus extends AsyncDisposable {
  /**
   * Publishes events and returns their outcomes in input order. "done": stored. "retry": not known. "dead": it can never be
   * stored (too large). "release": the broker accepts none of its kind now (a full stream, no queue); the event is not at
   * fault. Rejects with BusUnavailable if the broker could not be reached. One call must not have two events of one
   * aggregate; wait for the first, or the order is not kept.
   */
  publish(events: readonly Envelope[]): Promise<readonly Outcome[]>;

  /**
   * Resolves once deliveries can arrive; rejects with BusUnavailable if the broker cannot be reached now. The subscription
   * then survives lost connections. Disposing it stops new deliveries, waits for running handlers and releases the rest.
   */
  subscribe(subscription: Subscription): Promise<AsyncDisposable>;

  /** Resolves to undefined if the bus is not in the database of `db`, or its user may not write to it. */
  openPublisher?(db: Db): Promise<TransactionalPublisher | undefined>;

  /** Rejects if the broker cannot be reached now. For readiness checks and `todoke doctor`. */
  check(): Promise<BusInfo>;

  /** Counts the events that wait for a consumer of these subjects. It changes nothing at the broker. */
  readLag?(consumer: string, subjects: readonly string[]): Promise<ConsumerLag>;
}

export interface ConsumerLag {
  /** Events that it has not processed. A broker may count up to a bound. */
  readonly waiting: number;
  /** Time since the oldest of them was published; undefined if the broker does not tell. */
  readonly oldestMs?: number;
  /** Whether a process is subscribed; undefined if the broker does not tell. */
  readonly isSubscribed?: boolean;
}

export interface BusInfo {
  /** "nats-server 2.9.10" */
  readonly engine: string;
  /** Settings of the broker that weaken a guarantee, each with what to do. */
  readonly warnings: readonly string[];
}

/** Receives errors and messages of an adapter that no caller awaits. */
export interface BusLog {
  onError(error: unknown): void;
  onInfo(message: string): void;
}

/** The broker could not be reached. The events are not at fault, and no attempt is counted. */
export class BusUnavailable extends Error {
  override readonly name = "BusUnavailable";
}

export { HandlerPool, type HandlerPoolOptions } from "./handler-pool.ts";
export { MemoryBroker, type MemoryBus, memoryBus } from "./memory.ts";
