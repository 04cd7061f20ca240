/** What the suite's tests are made of: a place of their own, processes on it, events, and ears that note what they hear. */
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { done, type Outcome } from "../../worker/outcome.ts";
import type { Delivery, Envelope, EventBus, Subscription } from "../index.ts";
import type { BusUnderTest } from "./index.ts";

/** Longer than any test lasts: what comes back came back for another reason. */
const neverMs = 600_000;
/** Closing a bus waits for handlers and for the broker, but not for ever. */
const closeWithinMs = 60_000;

export interface Stage extends AsyncDisposable {
  /** Another process on this test's bus. It is closed at the end of the test. */
  open(): Promise<EventBus>;
  /** Makes a consumer known to the broker, so that from now on events are kept for it. */
  introduce(consumer?: string, subjects?: readonly string[]): Promise<void>;
  /** A promise that the test resolves, and that the end of the test resolves at the latest: no handler hangs for ever. */
  gate(): Gate;
}

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export interface StageOptions {
  readonly ackWaitMs?: number;
  /** Which broker; the one that all tests share unless told. */
  readonly on?: Pick<BusUnderTest, "open">;
}

export function setStage(bus: BusUnderTest, { ackWaitMs = neverMs, on = bus }: StageOptions = {}): Stage {
  const place = `t${randomBytes(6).toString("hex")}`;
  const opened: EventBus[] = [];
  const gates: Gate[] = [];
  const open = async () => {
    const process = await on.open(place, { ackWaitMs });
    opened.push(process);
    return process;
  };
  return {
    open,
    async introduce(consumer = "listener", subjects = [thingsSubject]) {
      await using process = await open();
      await using _ = await listen(process, { consumer, subjects });
    },
    gate() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const gate = { opened: promise, open: resolve };
      gates.push(gate);
      return gate;
    },
    async [Symbol.asyncDispose]() {
      for (const gate of gates) gate.open();
      await Promise.all(opened.map((process) => within(closeWithinMs, "a bus closes", process[Symbol.asyncDispose]())));
    },
  };
}

const thingsSubject = "things.events";

/** An event about nothing else: its aggregate is its own unless told. */
export function thing(about: Partial<Envelope> = {}): Envelope {
  const eventId = randomUUID();
  return {
    eventId,
    eventType: "ThingHappened",
    subject: thingsSubject,
    aggregateKey: eventId,
    occurredAt: "2026-01-02T03:04:05.678Z",
    headers: {},
    payload: Buffer.from("something"),
    ...about,
  };
}

export function things(count: number, about: (n: number) => Partial<Envelope> = () => ({})): Envelope[] {
  return Array.from({ length: count }, (_, n) => thing(about(n)));
}

/** Publishes and insists: every event is answered "done". */
export async function store(bus: EventBus, events: readonly Envelope[]): Promise<void> {
  const outcomes = await within(60_000, "publish answers", bus.publish(events));
  assert.deepEqual(
    outcomes,
    events.map(() => done),
  );
}

/** Publishes one by one, in order, as the port asks for events of one aggregate. */
export async function storeInOrder(bus: EventBus, events: readonly Envelope[]): Promise<void> {
  for (const event of events) await store(bus, [event]);
}

export interface Ear extends AsyncDisposable {
  /** Every delivery, in the order of its arrival. */
  readonly heard: readonly Delivery[];
  /** How often one event came. */
  timesHeard(event: Envelope): number;
}

export interface Listening extends Partial<Omit<Subscription, "handle">> {
  readonly answer?: (delivery: Delivery, stopping: AbortSignal) => Outcome | Promise<Outcome>;
}

/** Subscribes and notes what comes. Answers "done" unless told otherwise. */
export async function listen(bus: EventBus, { answer = () => done, ...about }: Listening = {}): Promise<Ear> {
  const heard: Delivery[] = [];
  const subscription = await bus.subscribe({
    consumer: "listener",
    subjects: [thingsSubject],
    ...about,
    handle: async (deliveries, stopping) => {
      heard.push(...deliveries);
      return Promise.all(deliveries.map((delivery) => answer(delivery, stopping)));
    },
  });
  return {
    heard,
    timesHeard: (event) => heard.filter((delivery) => delivery.eventId === event.eventId).length,
    [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
  };
}

export const ids = (events: readonly Envelope[]): string[] => events.map((event) => event.eventId);
export const sorted = (names: readonly string[]): string[] => [...names].sort();

/** Waits for a promise, but not for ever. */
export async function within<T>(ms: number, what: string, promise: PromiseLike<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`waited ${ms} ms in vain until ${what}`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
