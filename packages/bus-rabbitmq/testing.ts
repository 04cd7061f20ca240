/** What the tests of this package share: a broker, places on it that vanish with their test, and a look behind the bus. */
import { randomBytes, randomUUID } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { type Engine, startEngine } from "@todoke/engines";
import type { Delivery, Envelope, EventBus, Handle, Subscription } from "@todoke/kernel/bus";
import { done, type Outcome } from "@todoke/kernel/worker";
import { type Channel, Connection } from "rabbitmq-client";
import { afterAll, beforeAll } from "vitest";
import { defaultStepsMs } from "./delays.ts";
import { openRabbitmqBus, type RabbitmqBusOptions } from "./index.ts";

/** RabbitMQ starts in five seconds alone, and in many more beside all the other tests. */
export const startMs = 240_000;

/** The broker of a test file: the one that the environment names, or a private one. Its URL is known once tests run. */
export function sharedBroker(): { readonly url: string } {
  const named = process.env.TEST_RABBITMQ_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!named) engine = await startEngine("rabbitmq");
  }, startMs);
  afterAll(() => engine?.[Symbol.asyncDispose](), startMs);
  return {
    get url() {
      return named || (engine?.url ?? "");
    },
  };
}

/** Does on a raw channel what only another client would do. */
export async function behindTheBus<Answer>(url: string, act: (channel: Channel) => Promise<Answer>): Promise<Answer> {
  const connection = new Connection({ url, retryLow: 100 });
  connection.on("error", () => {});
  try {
    const channel = await connection.acquire();
    return await act(channel).finally(() => channel.close());
  } finally {
    await connection.close();
  }
}

/** Makes a durable queue with somebody else's settings. */
export async function declareQueue(url: string, queue: string, settings: Record<string, unknown> = {}): Promise<void> {
  await behindTheBus(url, (channel) => channel.queueDeclare({ queue, durable: true, arguments: settings }));
}

export interface Place extends AsyncDisposable {
  readonly name: string;
  /** Another process in this place. It is closed at the end of the test. */
  open(options?: Partial<RabbitmqBusOptions>): Promise<EventBus>;
  queueOf(consumer: string): string;
  /** A queue as the broker sees it. Messages under way to consumers are not counted. */
  look(queue: string): Promise<{ readonly messageCount: number; readonly consumerCount: number }>;
  countIn(queue: string): Promise<number>;
}

/** A place that nobody else uses. Disposing it closes its processes and removes what they made on the broker. */
export function placeOn(url: string, name = `t${randomBytes(6).toString("hex")}`): Place {
  const opened: EventBus[] = [];
  const consumers = new Set<string>();
  const queueOf = (consumer: string) => `${name}.${consumer}`;
  const look = (queue: string) => behindTheBus(url, (channel) => channel.queueDeclare({ queue, passive: true }));
  return {
    name,
    queueOf,
    async open(options = {}) {
      // Nobody kills the broker here, so new queues need no rest.
      const bus = await openRabbitmqBus({
        url,
        name: "test",
        place: name,
        newQueueRestMs: 0,
        publishTimeoutMs: 30_000,
        ...options,
      });
      opened.push(bus);
      for (const consumer of Object.keys(options.consumers ?? {})) consumers.add(consumer);
      const subscribe: EventBus["subscribe"] = (wish) => {
        consumers.add(wish.consumer);
        return bus.subscribe(wish);
      };
      return Object.assign(Object.create(bus), {
        publish: bus.publish.bind(bus),
        check: bus.check.bind(bus),
        subscribe,
        [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
      });
    },
    look,
    countIn: async (queue) => (await look(queue)).messageCount,
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((bus) => bus[Symbol.asyncDispose]()));
      await behindTheBus(url, async (channel) => {
        await channel.exchangeDelete({ exchange: name });
        for (const queue of [...consumers].map(queueOf)) {
          for (const delayMs of defaultStepsMs) await channel.queueDelete({ queue: `${queue}.retry.${delayMs}ms` });
          await channel.queueDelete({ queue });
        }
      });
    },
  };
}

export const subject = "things.events";

export function thing(about: Partial<Envelope> = {}): Envelope {
  const eventId = randomUUID();
  const fixed = { eventType: "ThingHappened", occurredAt: "2026-01-02T03:04:05.678Z", headers: {} };
  return { eventId, subject, aggregateKey: eventId, payload: Buffer.from("something"), ...fixed, ...about };
}

export const things = (count: number): Envelope[] => Array.from({ length: count }, () => thing());

export interface Ear extends AsyncDisposable {
  /** Every delivery, in the order of its arrival. */
  readonly heard: readonly Delivery[];
}

/** Subscribes and notes what comes. Answers "done" unless told otherwise. */
export async function listen(
  bus: EventBus,
  answer: (delivery: Delivery) => Outcome | Promise<Outcome> = () => done,
  { consumer = "listener", subjects = [subject] }: Partial<Subscription> = {},
): Promise<Ear> {
  const heard: Delivery[] = [];
  const handle: Handle = async (deliveries) => {
    heard.push(...deliveries);
    return Promise.all(deliveries.map(answer));
  };
  const subscription = await bus.subscribe({ consumer, subjects, handle });
  return { heard, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}

export interface TalkingWire extends AsyncDisposable {
  /** The broker's address with this wire's port in it. */
  readonly url: string;
  /** Says something to whoever is connected, as if the broker had. */
  say(frame: Buffer): void;
  /** Keeps what the broker says, until `release`. */
  hold(): void;
  release(): void;
}

/** A wire to the broker that has words of its own, and can keep the broker's to itself. */
export async function openTalkingWire(brokerUrl: string): Promise<TalkingWire> {
  const broker = new URL(brokerUrl);
  const pairs = new Map<Socket, Socket>();
  const join = (one: Socket, other: Socket) => {
    one.on("error", () => {});
    one.on("close", () => other.destroy());
    one.pipe(other);
  };
  const server = createServer((client) => {
    const upstream = connect(Number(broker.port), broker.hostname);
    join(client, upstream);
    join(upstream, client);
    pairs.set(client, upstream);
    client.on("close", () => pairs.delete(client));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the wire has no port");
  const url = new URL(brokerUrl);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    say: (frame) => {
      for (const client of pairs.keys()) client.write(frame);
    },
    hold: () => {
      for (const upstream of pairs.values()) upstream.pause();
    },
    release: () => {
      for (const upstream of pairs.values()) upstream.resume();
    },
    [Symbol.asyncDispose]: () => {
      for (const client of pairs.keys()) client.destroy();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

/** A method frame of the connection: type 1, channel 0, class 10. */
function connectionFrame(method: number, text?: string): Buffer {
  const argument = text === undefined ? Buffer.alloc(0) : Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
  const head = Buffer.alloc(11);
  head.writeUInt8(1, 0);
  head.writeUInt32BE(4 + argument.length, 3);
  head.writeUInt16BE(10, 7);
  head.writeUInt16BE(method, 9);
  return Buffer.concat([head, argument, Buffer.of(0xce)]);
}

export const blocked = (reason: string) => connectionFrame(60, reason);
export const unblocked = () => connectionFrame(61);
