/**
 * The conformance suite of the event bus: the same tests for every adapter, on a real broker.
 *
 * An adapter's test file is one call to `busConformance`. It declares in `guarantees` what its broker can do; where it cannot,
 * the test has another name and still asserts that nothing is lost. No test is skipped.
 */
import type { EventBus } from "../index.ts";
import { batchesConform } from "./batches.ts";
import { contentConforms } from "./content.ts";
import { deliveryConforms } from "./delivery.ts";
import { faultsConform } from "./faults.ts";
import { orderConforms } from "./order.ts";
import { outcomesConform } from "./outcomes.ts";
import { stoppingConforms } from "./stopping.ts";

export { type FaultProxy, openFaultProxy } from "../../testing/fault-proxy.ts";

export interface BusUnderTest {
  readonly name: string;
  /** vitest's `test`. */
  readonly test: (name: string, body: () => Promise<void>, timeoutMs?: number) => void;
  /** Opens another process on the bus. Events and consumers are visible within the same namespace only. */
  open(namespace: string, options: OpenOptions): Promise<EventBus>;
  /**
   * Disconnects this bus object as kill -9 of its process would: nothing is closed, acked or released, and nothing that
   * the object does reaches the broker. A fault proxy is one way to do it.
   */
  crash(bus: EventBus): Promise<void>;
  /** A broker that only this run uses. Without one, the test that kills it fails: nothing is skipped silently. */
  readonly ownBroker?: () => Promise<OwnBroker>;
  /** The largest payload that the adapter accepts; with one byte more the event is dead. At least 1 000 000. */
  readonly payloadBytesMax: number;
  readonly guarantees: BusGuarantees;
}

export interface OpenOptions {
  /** How long the broker waits for an ack before it redelivers. Brokers without such a wait ignore it. */
  readonly ackWaitMs: number;
}

export interface OwnBroker extends AsyncDisposable {
  open(namespace: string, options: OpenOptions): Promise<EventBus>;
  /** Kills the broker with -9 and starts it on the same data and address. Resolves when it accepts connections. */
  restart(): Promise<void>;
}

/** Guarantees that differ between brokers. All others hold for every adapter. */
export interface BusGuarantees {
  /** An event published twice is delivered once. */
  readonly dedupes: boolean;
  /** A retry blocks the later events of its aggregate. */
  readonly ordersAfterRetry: boolean;
  /** Events of one aggregate are handled one after another, also across processes that share the consumer. */
  readonly ordersAcrossProcesses: boolean;
  /** A new consumer gets the events published before its first subscription. */
  readonly replaysToNewConsumers: boolean;
}

/** Declares the tests of one adapter. */
export function busConformance(bus: BusUnderTest): void {
  deliveryConforms(bus);
  batchesConform(bus);
  outcomesConform(bus);
  orderConforms(bus);
  contentConforms(bus);
  stoppingConforms(bus);
  faultsConform(bus);
}
