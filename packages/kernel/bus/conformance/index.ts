/**
 * What every event bus promises, asked of each adapter in the same words, on a real broker.
 *
 * An adapter's test file is one call to `busConformance`. What an adapter cannot promise it says in `promises`, and
 * then the suite says so by name and still asks that nothing is lost; no test is ever skipped.
 */
import type { EventBus } from "../index.ts";
import { answersConform } from "./answers.ts";
import { batchesConform } from "./batches.ts";
import { contentConforms } from "./content.ts";
import { deliveryConforms } from "./delivery.ts";
import { faultsConform } from "./faults.ts";
import { orderConforms } from "./order.ts";
import { stoppingConforms } from "./stopping.ts";

export { openWire, type Wire } from "../../testing/wire.ts";

export interface BusUnderTest {
  readonly name: string;
  /** vitest's `test`. */
  readonly test: (name: string, body: () => Promise<void>, timeoutMs?: number) => void;
  /**
   * Another process on the bus that `place` names: its events and consumers are seen by those who open the same place,
   * and by nobody else.
   */
  open(place: string, options: OpenOptions): Promise<EventBus>;
  /**
   * Cuts this bus object off, as kill -9 of its process would: nothing is closed, answered or given back, and nothing
   * that the object does from now on reaches the broker. (`openWire` is one way to it.)
   */
  crash(bus: EventBus): Promise<void>;
  /** A broker that only this run uses. Without one, the test that kills it fails: there is no silent skip. */
  readonly ownBroker?: () => Promise<OwnBroker>;
  /** The largest payload that the adapter takes; one byte more is answered "dead". At least 1 000 000. */
  readonly payloadBytesMax: number;
  readonly promises: BusPromises;
}

export interface OpenOptions {
  /** How long the broker waits for an answer before it takes the process for dead. Brokers without such a wait ignore it. */
  readonly ackWaitMs: number;
}

export interface OwnBroker extends AsyncDisposable {
  open(place: string, options: OpenOptions): Promise<EventBus>;
  /** kill -9 of the broker, and a start on the same data and address. Resolves when it answers again. */
  restart(): Promise<void>;
}

/** What differs between brokers. Everything else holds for all of them. */
export interface BusPromises {
  /** An event published twice is delivered once. */
  readonly dedupes: boolean;
  /** An event that is retried holds back the later events of its aggregate. */
  readonly ordersAfterRetry: boolean;
  /** Events of one aggregate are handled one after another, also when many processes share the consumer. */
  readonly ordersAcrossProcesses: boolean;
  /** A consumer that never subscribed before gets what was published before it came. */
  readonly replaysToNewConsumers: boolean;
}

export function busConformance(bus: BusUnderTest): void {
  deliveryConforms(bus);
  batchesConform(bus);
  answersConform(bus);
  orderConforms(bus);
  contentConforms(bus);
  stoppingConforms(bus);
  faultsConform(bus);
}
