/** Parts of the suite's tests: a namespace per test, processes on it, sample events, and consumers that record deliveries. */
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { done, type Outcome } from "../../worker/outcome.ts";
import { withTimeout as withTimeoutError } from "../../worker/with-timeout.ts";
import type { Delivery, Envelope, EventBus, Subscription } from "../index.ts";
import type { BusUnderTest } from "./index.ts";

/** Longer than any test, so that no redelivery is due to the ack wait. */
const neverMs = 600_000;
/** Closing a bus waits for handlers and for the broker. */
const closeWithinMs = 60_000;

export interface Harness extends AsyncDisposable {
  /** Opens another process on this test's bus. It is closed at the end of the test. */
  open(): Promise<EventBus>;
  /** Registers a consumer with the broker, so that events are stored for it from now on. */
  registerConsumer(consumer?: string, subjects?: readonly string[]): Promise<void>;
  /** A promise that the test resolves; the end of the test resolves it too, so that no handler hangs. */
  gate(): Gate;
}

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export interface HarnessOptions {
  readonly ackWaitMs?: number;
  /** The broker; by default the one that all tests share. */
  readonly on?: Pick<BusUnderTest, "open">;
}

export function createHarness(bus: BusUnderTest, { ackWaitMs = neverMs, on = bus }: HarnessOptions = {}): Harness {
  const namespace = `t${randomBytes(6).toString("hex")}`;
  const opened: EventBus[] = [];
  const gates: Gate[] = [];
  const open = async () => {
    const process = await on.open(namespace, { ackWaitMs });
    opened.push(process);
    return process;
  };
  return {
    open,
    async registerConsumer(consumer = "listener", subjects = [sampleSubject]) {
      await using process = await open();
      await using _ = await recordDeliveries(process, { consumer, subjects });
    },
    gate() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const gate = { opened: promise, open: resolve };
      gates.push(gate);
      return gate;
    },
    async [Symbol.asyncDispose]() {
      for (const gate of gates) gate.open();
      await Promise.all(
        opened.map((process) => withTimeout(closeWithinMs, "a bus closes", process[Symbol.asyncDispose]())),
      );
    },
  };
}

const sampleSubject = "things.events";

/** A sample event; by default with an aggregate of its own. */
export function sampleEvent(fields: Partial<Envelope> = {}): Envelope {
  const eventId = randomUUID();
  return {
    eventId,
    eventType: "ThingHappened",
    subject: sampleSubject,
    aggregateKey: eventId,
    occurredAt: "2026-01-02T03:04:05.678Z",
    headers: {},
    payload: Buffer.from("something"),
    ...fields,
  };
}

export function sampleEvents(count: number, fields: (n: number) => Partial<Envelope> = () => ({})): Envelope[] {
  return Array.from({ length: count }, (_, n) => sampleEvent(fields(n)));
}

/** Publishes and asserts that every event is "done". */
export async function publishAll(bus: EventBus, events: readonly Envelope[]): Promise<void> {
  const outcomes = await withTimeout(60_000, "publish resolves", bus.publish(events));
  assert.deepEqual(
    outcomes,
    events.map(() => done),
  );
}

/** Publishes one by one, as the port requires for events of one aggregate. */
export async function publishInOrder(bus: EventBus, events: readonly Envelope[]): Promise<void> {
  for (const event of events) await publishAll(bus, [event]);
}

export interface RecordingConsumer extends AsyncDisposable {
  /** Every delivery, in order of arrival. */
  readonly received: readonly Delivery[];
  /** How often an event was delivered. */
  countOf(event: Envelope): number;
}

export interface RecordingOptions extends Partial<Omit<Subscription, "handle">> {
  readonly handle?: (delivery: Delivery, stopping: AbortSignal) => Outcome | Promise<Outcome>;
}

/** Subscribes and records deliveries. The outcome is "done" by default. */
export async function recordDeliveries(
  bus: EventBus,
  { handle = () => done, ...options }: RecordingOptions = {},
): Promise<RecordingConsumer> {
  const received: Delivery[] = [];
  const subscription = await bus.subscribe({
    consumer: "listener",
    subjects: [sampleSubject],
    ...options,
    handle: async (deliveries, stopping) => {
      received.push(...deliveries);
      return Promise.all(deliveries.map((delivery) => handle(delivery, stopping)));
    },
  });
  return {
    received,
    countOf: (event) => received.filter((delivery) => delivery.eventId === event.eventId).length,
    [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
  };
}

export const ids = (events: readonly Envelope[]): string[] => events.map((event) => event.eventId);
export const sorted = (names: readonly string[]): string[] => [...names].sort();

/** Waits for a promise for at most `ms`. */
export const withTimeout = <T>(ms: number, what: string, promise: PromiseLike<T>): Promise<T> =>
  withTimeoutError(ms, promise, () => new Error(`timed out after ${ms} ms waiting until ${what}`));
