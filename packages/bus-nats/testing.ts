/** What the tests of this package share: a server, places of their own on it, events, and the server's own view. */
import { randomBytes, randomUUID } from "node:crypto";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type Engine, startEngine } from "@todoke/engines";
import type { Delivery, Envelope, EventBus, Subscription } from "@todoke/kernel/bus";
import { done } from "@todoke/kernel/worker";
import { afterAll, beforeAll } from "vitest";
import { type NatsBusOptions, openNatsBus } from "./index.ts";

/** The server of a test file: the one that the environment names, or a private one. Its URL is known once tests run. */
export function sharedServer(): { readonly url: string } {
  const named = process.env.TEST_NATS_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!named) engine = await startEngine("nats");
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
  return {
    get url() {
      return named || (engine?.url ?? "");
    },
  };
}

export interface Stage extends AsyncDisposable {
  readonly place: string;
  /** The name of the stream of `things.events`, where `thing` publishes. */
  readonly stream: string;
  /** What an operator has: the server's API, past the bus. */
  readonly manager: JetStreamManager;
  /** Another process on this place. */
  open(options?: Partial<NatsBusOptions>): Promise<EventBus>;
}

export async function setStage({ url }: { readonly url: string }): Promise<Stage> {
  const place = `t${randomBytes(6).toString("hex")}`;
  const connection = await connect({ servers: new URL(url).host });
  const opened: EventBus[] = [];
  return {
    place,
    stream: `${place.toUpperCase()}=THINGS`,
    manager: await jetstreamManager(connection),
    async open(options = {}) {
      const bus = await openNatsBus({ url, name: "test", place, ...options });
      opened.push(bus);
      return bus;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((bus) => bus[Symbol.asyncDispose]()));
      await connection.close();
    },
  };
}

export function thing(about: Partial<Envelope> = {}): Envelope {
  return {
    eventId: randomUUID(),
    eventType: "ThingHappened",
    subject: "things.events",
    aggregateKey: "thing/1",
    occurredAt: "2026-01-02T03:04:05.678Z",
    headers: {},
    payload: Buffer.from("something"),
    ...about,
  };
}

/** Subscribes and notes what comes. */
export async function listen(bus: EventBus, about: Partial<Subscription> = {}): Promise<Delivery[]> {
  const heard: Delivery[] = [];
  await bus.subscribe({
    consumer: "listener",
    subjects: ["things.events"],
    handle: async (deliveries) => {
      heard.push(...deliveries);
      return deliveries.map(() => done);
    },
    ...about,
  });
  return heard;
}
