/** Test harness of this package: a server, a namespace per test, sample events and the server's API. */
import { randomBytes, randomUUID } from "node:crypto";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type Engine, startEngine } from "@todoke/engines";
import type { Delivery, Envelope, EventBus, Subscription } from "@todoke/kernel/bus";
import { done } from "@todoke/kernel/worker";
import { afterAll, beforeAll } from "vitest";
import { type NatsBusOptions, openNatsBus } from "./index.ts";

/** The server of a test file: TEST_NATS_URL or a private one. The URL is known once tests run. */
export function sharedServer(): { readonly url: string } {
  const configuredUrl = process.env.TEST_NATS_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!configuredUrl) engine = await startEngine("nats");
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
  return {
    get url() {
      return configuredUrl || (engine?.url ?? "");
    },
  };
}

export interface Harness extends AsyncDisposable {
  readonly namespace: string;
  /** The stream of `things.events`, the subject of sample events. */
  readonly stream: string;
  /** The server's API, for the view of an operator. */
  readonly manager: JetStreamManager;
  /** Opens the bus of another process. */
  open(options?: Partial<NatsBusOptions>): Promise<EventBus>;
}

export async function createHarness({ url }: { readonly url: string }): Promise<Harness> {
  const namespace = `t${randomBytes(6).toString("hex")}`;
  const connection = await connect({ servers: new URL(url).host });
  const opened: EventBus[] = [];
  return {
    namespace,
    stream: `${namespace.toUpperCase()}=THINGS`,
    manager: await jetstreamManager(connection),
    async open(options = {}) {
      const bus = await openNatsBus({ url, name: "test", namespace: namespace, ...options });
      opened.push(bus);
      return bus;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((bus) => bus[Symbol.asyncDispose]()));
      await connection.close();
    },
  };
}

export function sampleEvent(fields: Partial<Envelope> = {}): Envelope {
  return {
    eventId: randomUUID(),
    eventType: "ThingHappened",
    subject: "things.events",
    aggregateKey: "thing/1",
    occurredAt: "2026-01-02T03:04:05.678Z",
    headers: {},
    payload: Buffer.from("something"),
    ...fields,
  };
}

/** Subscribes and records the deliveries. */
export async function recordDeliveries(bus: EventBus, options: Partial<Subscription> = {}): Promise<Delivery[]> {
  const received: Delivery[] = [];
  await bus.subscribe({
    consumer: "listener",
    subjects: ["things.events"],
    handle: async (deliveries) => {
      received.push(...deliveries);
      return deliveries.map(() => done);
    },
    ...options,
  });
  return received;
}
