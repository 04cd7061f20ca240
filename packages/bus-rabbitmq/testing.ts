/** Test harness of this package: a broker, a namespace per test, sample events, and raw access to the broker. */
import { randomBytes, randomUUID } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { type Engine, startEngine } from "@todoke/engines";
import type { Delivery, Envelope, EventBus, Handler, Subscription } from "@todoke/kernel/bus";
import { done, type Outcome } from "@todoke/kernel/worker";
import { type Channel, Connection } from "rabbitmq-client";
import { afterAll, beforeAll } from "vitest";
import { openRabbitmqBus, type RabbitmqBusOptions } from "./index.ts";
import { defaultStepsMs } from "./retry-queues.ts";

/** RabbitMQ starts in five seconds on an idle machine, and in many more beside all other tests. */
export const startMs = 240_000;

/** The broker of a test file: TEST_RABBITMQ_URL or a private one. The URL is known once tests run. */
export function sharedBroker(): { readonly url: string } {
  const configuredUrl = process.env.TEST_RABBITMQ_URL;
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (!configuredUrl) engine = await startEngine("rabbitmq");
  }, startMs);
  afterAll(() => engine?.[Symbol.asyncDispose](), startMs);
  return {
    get url() {
      return configuredUrl || (engine?.url ?? "");
    },
  };
}

/** Runs an action on a channel of another client. */
export async function withChannel<Result>(url: string, action: (channel: Channel) => Promise<Result>): Promise<Result> {
  const connection = new Connection({ url, retryLow: 100 });
  connection.on("error", () => {});
  try {
    const channel = await connection.acquire();
    return await action(channel).finally(() => channel.close());
  } finally {
    await connection.close();
  }
}

/** Declares a durable queue with other settings. */
export async function declareQueue(url: string, queue: string, settings: Record<string, unknown> = {}): Promise<void> {
  await withChannel(url, (channel) => channel.queueDeclare({ queue, durable: true, arguments: settings }));
}

export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  /** Opens the bus of another process, which is closed at the end of the test. */
  open(options?: Partial<RabbitmqBusOptions>): Promise<EventBus>;
  queueName(consumer: string): string;
  /** The view of the broker. Unacked messages are not counted. */
  inspect(queue: string): Promise<{ readonly messageCount: number; readonly consumerCount: number }>;
  countMessages(queue: string): Promise<number>;
}

/** A namespace for one test. Disposing it closes its buses and deletes its exchange and queues. */
export function createNamespace(url: string, name = `t${randomBytes(6).toString("hex")}`): TestNamespace {
  const opened: EventBus[] = [];
  const consumers = new Set<string>();
  const queueName = (consumer: string) => `${name}.${consumer}`;
  const inspect = (queue: string) => withChannel(url, (channel) => channel.queueDeclare({ queue, passive: true }));
  return {
    name,
    queueName,
    async open(options = {}) {
      // The broker is not killed here, so new queues can be used at once.
      const bus = await openRabbitmqBus({
        url,
        name: "test",
        namespace: name,
        newQueueDelayMs: 0,
        publishTimeoutMs: 30_000,
        ...options,
      });
      opened.push(bus);
      for (const consumer of Object.keys(options.consumers ?? {})) consumers.add(consumer);
      const subscribe: EventBus["subscribe"] = (request) => {
        consumers.add(request.consumer);
        return bus.subscribe(request);
      };
      return Object.assign(Object.create(bus), {
        publish: bus.publish.bind(bus),
        check: bus.check.bind(bus),
        subscribe,
        readLag: (consumer: string, subjects: readonly string[]) => bus.readLag?.(consumer, subjects),
        [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
      });
    },
    inspect,
    countMessages: async (queue) => (await inspect(queue)).messageCount,
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((bus) => bus[Symbol.asyncDispose]()));
      await withChannel(url, async (channel) => {
        await channel.exchangeDelete({ exchange: name });
        for (const queue of [...consumers].map(queueName)) {
          for (const delayMs of defaultStepsMs) await channel.queueDelete({ queue: `${queue}.retry.${delayMs}ms` });
          await channel.queueDelete({ queue });
        }
      });
    },
  };
}

export const subject = "things.events";

export function sampleEvent(fields: Partial<Envelope> = {}): Envelope {
  const eventId = randomUUID();
  const defaults = { eventType: "ThingHappened", occurredAt: "2026-01-02T03:04:05.678Z", headers: {} };
  return { eventId, subject, aggregateKey: eventId, payload: Buffer.from("something"), ...defaults, ...fields };
}

export const sampleEvents = (count: number): Envelope[] => Array.from({ length: count }, () => sampleEvent());

export interface RecordingConsumer extends AsyncDisposable {
  /** All deliveries, in the order of arrival. */
  readonly deliveries: readonly Delivery[];
}

/** Subscribes and records the deliveries. The default outcome is "done". */
export async function recordDeliveries(
  bus: EventBus,
  decide: (delivery: Delivery) => Outcome | Promise<Outcome> = () => done,
  { consumer = "listener", subjects = [subject] }: Partial<Subscription> = {},
): Promise<RecordingConsumer> {
  const recorded: Delivery[] = [];
  const handle: Handler = async (deliveries) => {
    recorded.push(...deliveries);
    return Promise.all(deliveries.map(decide));
  };
  const subscription = await bus.subscribe({ consumer, subjects, handle });
  return { deliveries: recorded, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}

export interface FrameProxy extends AsyncDisposable {
  /** The URL of the broker with the port of this proxy. */
  readonly url: string;
  /** Sends a frame to all clients, as if the broker had sent it. */
  send(frame: Buffer): void;
  /** Holds back what the broker sends, until `release`. */
  hold(): void;
  release(): void;
}

/** A proxy that can inject frames and hold back those of the broker. */
export async function openFrameProxy(brokerUrl: string): Promise<FrameProxy> {
  const broker = new URL(brokerUrl);
  const pairs = new Map<Socket, Socket>();
  const forward = (one: Socket, other: Socket) => {
    one.on("error", () => {});
    one.on("close", () => other.destroy());
    one.pipe(other);
  };
  const server = createServer((client) => {
    const upstream = connect(Number(broker.port), broker.hostname);
    forward(client, upstream);
    forward(upstream, client);
    pairs.set(client, upstream);
    client.on("close", () => pairs.delete(client));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const url = new URL(brokerUrl);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    send: (frame) => {
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
