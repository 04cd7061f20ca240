/**
 * The event bus on RabbitMQ quorum queues. README.md describes its guarantees, its limits and how to run a broker for it.
 *
 * The bus opens also while the broker is unavailable, and reconnects until it is closed. While there is no connection, publish
 * and subscribe reject with BusUnavailable.
 */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import {
  type BusInfo,
  BusUnavailable,
  type ConsumerLag,
  type Envelope,
  type EventBus,
  type Subscription as SubscriptionRequest,
} from "@todoke/kernel/bus";
import type { Outcome } from "@todoke/kernel/worker";
import { Connection, type Log } from "./connection.ts";
import { toOutgoing } from "./message.ts";
import { Publisher } from "./publisher.ts";
import { defaultStepsMs, RetryQueues, sortSteps } from "./retry-queues.ts";
import { Subscription } from "./subscription.ts";
import { readQueue, Topology } from "./topology.ts";
import { parseRabbitmqUrl } from "./url.ts";

export interface RabbitmqBusOptions {
  /**
   * "amqp://user:password@host:5672/vhost", or amqps://…; several nodes of a cluster are separated by commas. Parameters: ca_file,
   * cert_file, key_file, namespace, queues (consumer:queue,…).
   */
  readonly url: string;
  /** "host:port" of each node of a cluster, tried in turn. User, password and vhost are those of the URL. */
  readonly hosts?: readonly string[];
  readonly tls?: TlsOptions;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  /** Separates this bus from others on the same broker: the name of its exchange and the prefix of its queues. */
  readonly namespace?: string;
  /**
   * The consumers and their subjects: `{ notification: ["entitlement.events"] }`. Their queues are declared before the first
   * event is published, so that events are stored for consumers that have never run.
   */
  readonly consumers?: Readonly<Record<string, readonly string[]>>;
  /**
   * Names of the queues of some consumers: `{ points: "reservationQueue" }`. Without the namespace, so buses on one broker must
   * not share a name. Every process that publishes to the consumer or runs it must have the same name.
   */
  readonly queues?: Readonly<Record<string, string>>;
  /** How long publish waits for the confirms of the broker. */
  readonly publishTimeoutMs?: number;
  /** An event with a larger payload is dead. The max_message_size of the broker applies too. */
  readonly payloadBytesMax?: number;
  /** The most messages in flight of a subscription, for any batchMax and concurrency. */
  readonly prefetchMax?: number;
  /** The redelivery delay after a handler threw. */
  readonly retryMs?: number;
  /** The delay of a retry is rounded up to one of these. Each is a queue of every consumer that uses it. */
  readonly delayStepsMs?: readonly number[];
  /** The delay before the first use of a new queue: until the broker has it on disk. */
  readonly newQueueDelayMs?: number;
  /** Receives events that concern no caller: lost connections, repairs, handlers that throw. */
  readonly log?: Log;
}

/** The limit of NATS. RabbitMQ 4 accepts 16 MiB by default, RabbitMQ 3 128 MiB. */
const defaultPayloadBytesMax = 1024 * 1024;

/** Resolves after the first attempt to connect, also if it failed. Rejects only for invalid options. */
export async function openRabbitmqBus(given: RabbitmqBusOptions): Promise<EventBus> {
  const { queues: queuesInUrl, ...inUrl } = parseRabbitmqUrl(given.url);
  const options = { ...given, ...inUrl, queues: { ...given.queues, ...queuesInUrl } };
  const {
    namespace = "todoke",
    consumers = {},
    queues,
    newQueueDelayMs = 3_000,
    delayStepsMs = defaultStepsMs,
  } = options;
  const settings = { ...options, delayStepsMs: sortSteps(delayStepsMs), log: catchErrors(options.log) };
  const topology = new Topology({ namespace, queues, newQueueDelayMs, log: settings.log });
  for (const consumer of Object.keys(consumers)) topology.queueName(consumer); // Throws for an invalid name.
  return new RabbitmqBus(settings, topology, await openConnection(settings, "publishes"));
}

type Settings = RabbitmqBusOptions & Required<Pick<RabbitmqBusOptions, "delayStepsMs" | "log">>;

const openConnection = (settings: Settings, task: string) =>
  Connection.open({ ...settings, name: `${settings.name} (${task})` });

/** No caller could catch an error that the log throws. */
function catchErrors(log: Log = () => {}): Log {
  return (message, error) => {
    try {
      log(message, error);
    } catch {
      // There is no other place to report it.
    }
  };
}

class RabbitmqBus implements EventBus {
  readonly #settings: Settings;
  readonly #topology: Topology;
  // Two connections: a broker that is short of memory blocks connections that publish, and consuming frees memory.
  readonly #connection: Connection;
  #consumersConnection: Promise<Connection> | undefined;
  readonly #publisher: Publisher;
  readonly #retryQueues: RetryQueues;
  readonly #subscriptions = new Set<Subscription>();
  #closed: Promise<void> | undefined;

  constructor(settings: Settings, topology: Topology, connection: Connection) {
    const { publishTimeoutMs: timeoutMs = 5_000, payloadBytesMax = defaultPayloadBytesMax, retryMs = 1_000 } = settings;
    const { delayStepsMs: stepsMs, log } = settings;
    const prepare = () => this.#prepare();
    this.#settings = settings;
    this.#topology = topology;
    this.#connection = connection;
    this.#publisher = new Publisher({ connection, prepare, timeoutMs, payloadBytesMax, retryMs, log });
    this.#retryQueues = new RetryQueues({ connection, publisher: this.#publisher, topology, stepsMs, log });
  }

  publish(events: readonly Envelope[]): Promise<readonly Outcome[]> {
    return this.#publisher.publish(events.map((event) => toOutgoing(event, this.#topology.exchange)));
  }

  async subscribe(request: SubscriptionRequest): Promise<AsyncDisposable> {
    if (this.#closed) throw new BusUnavailable("this bus is closed");
    this.#consumersConnection ??= openConnection(this.#settings, "consumes");
    const { prefetchMax = 2_000, retryMs = 1_000, log } = this.#settings;
    const subscription = await Subscription.open(request, {
      connection: await this.#consumersConnection,
      topology: this.#topology,
      retryQueues: this.#retryQueues,
      prefetchMax,
      retryMs,
      log,
    });
    this.#subscriptions.add(subscription);
    // The bus may have been closed while this subscription opened.
    if (this.#closed) await subscription[Symbol.asyncDispose]();
    return {
      [Symbol.asyncDispose]: async () => {
        await subscription[Symbol.asyncDispose]();
        this.#subscriptions.delete(subscription);
      },
    };
  }

  async check(): Promise<BusInfo> {
    const { product, version } = await this.#connection.server();
    const blocked = this.#connection.blockedReason;
    if (blocked === undefined) await this.#connection.request(async () => {});
    const warnings = [...this.#topology.warnings];
    if (blocked !== undefined) warnings.push(`RabbitMQ accepts no messages (${blocked}): give it more memory or disk.`);
    return { engine: `${product} ${version}`, warnings };
  }

  /** RabbitMQ does not reveal the age of a message without delivering it. Messages that wait for a retry count as well. */
  async readLag(consumer: string): Promise<ConsumerLag> {
    const retries = this.#settings.delayStepsMs.map((ms) => this.#topology.retryQueueName(consumer, ms));
    const names = [this.#topology.queueName(consumer), ...retries];
    const found = await Promise.all(names.map((name) => readQueue(this.#connection, name)));
    const waiting = found.reduce((sum, queue) => sum + (queue?.messageCount ?? 0), 0);
    return { waiting, isSubscribed: (found[0]?.consumerCount ?? 0) > 0 };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // Subscriptions first: their retries may still have to be published to retry queues.
    await Promise.all([...this.#subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
    await this.#publisher[Symbol.asyncDispose]();
    const connections = [this.#connection, await this.#consumersConnection];
    await Promise.all(connections.map((connection) => connection?.[Symbol.asyncDispose]()));
  }

  async #prepare(): Promise<void> {
    await this.#topology.declareExchange(this.#connection);
    const consumers = Object.entries(this.#settings.consumers ?? {});
    await Promise.all(
      consumers.map(([name, subjects]) => this.#topology.declareConsumer(this.#connection, { name, subjects })),
    );
  }
}
