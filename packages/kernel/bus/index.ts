/**
 * The event bus as the kernel sees it: a port of two verbs.
 *
 * Every adapter keeps these promises (conformance.ts asks each of them on a real server):
 *  - an event is stored, as safely as the broker can, before `publish` says "done" of it;
 *  - every consumer gets every event of its subjects at least once, from its first subscription on (and those published
 *    before it, where the adapter says `replaysToNewConsumers`);
 *  - processes that subscribe under one consumer name share its events;
 *  - an event comes back until it is answered "done" or "dead", after a lost answer or a killed process as well;
 *  - first deliveries of one aggregate come in the order of publication; headers and payload come as they were sent.
 */
import type { Outcome } from "../worker/outcome.ts";

/** One event on its way. Field names follow the outbox's columns. */
export interface Envelope {
  /** UUID v7, the same through every retry: brokers and inboxes tell duplicates by it. */
  readonly eventId: string;
  /** "EntitlementGranted". */
  readonly eventType: string;
  /** Where it is published: "entitlement.events". */
  readonly subject: string;
  /** What it is about; events of one aggregate keep their order. */
  readonly aggregateKey: string;
  /** RFC 3339, UTC. */
  readonly occurredAt: string;
  /** Trace context and whatever else travels with it; names in lower case, values printable ASCII. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
}

/** An event as it reached a consumer. */
export interface Delivery extends Envelope {
  /** True when it may have been delivered before: what handles it may have died of it. */
  readonly redelivered: boolean;
}

/** Answers each delivery in its place. It is called with at most `batchMax` at once; a rejection is a retry of them all. */
export type Handle = (deliveries: readonly Delivery[], stopping: AbortSignal) => Promise<readonly Outcome[]>;

export interface Subscription {
  /** The durable name: who consumes. Its place in the stream outlives every process. */
  readonly consumer: string;
  readonly subjects: readonly string[];
  readonly handle: Handle;
  /** The most deliveries handed over at once. They are handed over as they come: nothing waits for a batch to fill. */
  readonly batchMax?: number;
  /** Batches handled at the same time. One keeps the order of an aggregate through handling too. */
  readonly concurrency?: number;
}

export interface EventBus extends AsyncDisposable {
  /**
   * Publishes and answers each event in its place: "done" once stored; "retry" when that is not known; "dead" when it
   * never can be (too large); "release" when the broker takes none of its kind just now (a full stream, no queue to put it
   * in), which is nothing against the event. Rejects with BusUnavailable when the broker could not be asked at all.
   * Two events of one aggregate must not be in one call: the caller waits for the first, or order cannot be kept.
   */
  publish(events: readonly Envelope[]): Promise<readonly Outcome[]>;

  /**
   * Resolves once deliveries can come; rejects with BusUnavailable when the broker cannot be asked now. From then on the
   * subscription outlives every loss of its connection. Disposing the result stops new deliveries, waits for those being
   * handled and gives the rest back at once.
   */
  subscribe(subscription: Subscription): Promise<AsyncDisposable>;

  /** Rejects, saying why, when the broker cannot be reached now: for readiness and `todoke doctor`. */
  check(): Promise<BusInfo>;
}

export interface BusInfo {
  /** "nats-server 2.9.10" */
  readonly engine: string;
  /** Settings of the broker that weaken a promise, each a sentence that says what to do. */
  readonly warnings: readonly string[];
}

/** Where an adapter reports what no caller waits for. */
export interface BusLog {
  onError(error: unknown): void;
  onInfo(message: string): void;
}

/** The broker could not be asked: nothing is wrong with the events, and no attempt should be counted against them. */
export class BusUnavailable extends Error {
  override readonly name = "BusUnavailable";
}

export { MemoryBroker, type MemoryBus, memoryBus } from "./memory.ts";
