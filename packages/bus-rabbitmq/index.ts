/**
 * The event bus on RabbitMQ quorum queues. README.md says what it promises, what it cannot, and how to run a broker for it.
 *
 * Opening never fails because the broker is away: the bus connects when it can, and again whenever it must, for ever.
 * Until then publishing and subscribing reject with BusUnavailable.
 */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import {
  type BusInfo,
  BusUnavailable,
  type Envelope,
  type EventBus,
  type Subscription as Wish,
} from "@todoke/kernel/bus";
import type { Outcome } from "@todoke/kernel/worker";
import { Delays, defaultStepsMs, risingSteps } from "./delays.ts";
import { Link, type Log } from "./link.ts";
import { outgoing } from "./message.ts";
import { Publisher } from "./publisher.ts";
import { Subscription } from "./subscription.ts";
import { Topology } from "./topology.ts";

export interface RabbitmqBusOptions {
  /** "amqp://user:password@host:5672/vhost", or amqps://… */
  readonly url: string;
  /** "host:port" of each node of a cluster, tried in turn; user, password and vhost come from the URL. */
  readonly hosts?: readonly string[];
  readonly tls?: TlsOptions;
  /** Shown in the broker's list of connections, so that an operator sees who is there. */
  readonly name: string;
  /** Keeps this bus apart from others on the same broker: the name of its exchange, and the beginning of its queues'. */
  readonly place?: string;
  /**
   * Who consumes what: `{ notification: ["entitlement.events"] }`. Their queues are made before the first event is
   * published, so that it is kept for them even if they have never run yet.
   */
  readonly consumers?: Readonly<Record<string, readonly string[]>>;
  /** How long publish waits for the broker to say "stored". */
  readonly publishTimeoutMs?: number;
  /** An event with a larger payload is dead. The broker's own max_message_size counts too. */
  readonly payloadBytesMax?: number;
  /** The most messages that a subscription has under way, whatever its batchMax and concurrency. */
  readonly prefetchMax?: number;
  /** When a batch whose handler threw comes again. */
  readonly retryMs?: number;
  /** A retry's delay is rounded up to one of these. Each is a queue of each consumer that uses it. */
  readonly delayStepsMs?: readonly number[];
  /** How long a new queue is left alone before anything is sent to it: until the broker has its name on disk. */
  readonly newQueueRestMs?: number;
  /** Hears what no caller is told: lost connections, repairs, handlers that throw. */
  readonly log?: Log;
}

/** RabbitMQ 4 takes 16 MiB unless told otherwise, RabbitMQ 3 takes 128; an event needs no more than NATS takes. */
const defaultPayloadBytesMax = 1024 * 1024;

/** Resolves after the first try to connect, whatever came of it. Rejects only on options that can never work. */
export async function openRabbitmqBus(options: RabbitmqBusOptions): Promise<EventBus> {
  const { place = "todoke", consumers = {}, newQueueRestMs = 1_500, delayStepsMs = defaultStepsMs } = options;
  const settings = { ...options, delayStepsMs: risingSteps(delayStepsMs), log: harmless(options.log) };
  const topology = new Topology({ place, newQueueRestMs, log: settings.log });
  for (const consumer of Object.keys(consumers)) topology.queueOf(consumer);
  return new RabbitmqBus(settings, topology, await openLink(settings, "publishes"));
}

type Settings = RabbitmqBusOptions & Required<Pick<RabbitmqBusOptions, "delayStepsMs" | "log">>;

const openLink = (settings: Settings, task: string) => Link.open({ ...settings, name: `${settings.name} (${task})` });

/** A log is called where nobody could catch what it throws. */
function harmless(log: Log = () => {}): Log {
  return (message, error) => {
    try {
      log(message, error);
    } catch {
      // There is nobody left to tell.
    }
  };
}

class RabbitmqBus implements EventBus {
  readonly #settings: Settings;
  readonly #topology: Topology;
  // Two connections: a broker that runs short stops those that publish, and consuming is what frees it.
  readonly #link: Link;
  #consumersLink: Promise<Link> | undefined;
  readonly #publisher: Publisher;
  readonly #delays: Delays;
  readonly #subscriptions = new Set<Subscription>();
  #closed: Promise<void> | undefined;

  constructor(settings: Settings, topology: Topology, link: Link) {
    const { publishTimeoutMs: timeoutMs = 5_000, payloadBytesMax = defaultPayloadBytesMax, retryMs = 1_000 } = settings;
    const { delayStepsMs: stepsMs, log } = settings;
    const prepare = () => this.#prepare();
    this.#settings = settings;
    this.#topology = topology;
    this.#link = link;
    this.#publisher = new Publisher({ link, prepare, timeoutMs, payloadBytesMax, retryMs, log });
    this.#delays = new Delays({ link, publisher: this.#publisher, topology, stepsMs, log });
  }

  publish(events: readonly Envelope[]): Promise<readonly Outcome[]> {
    return this.#publisher.publish(events.map((event) => outgoing(event, this.#topology.exchange)));
  }

  async subscribe(wish: Wish): Promise<AsyncDisposable> {
    if (this.#closed) throw new BusUnavailable("this bus is closed");
    this.#consumersLink ??= openLink(this.#settings, "consumes");
    const { prefetchMax = 2_000, retryMs = 1_000, log } = this.#settings;
    const [topology, delays, link] = [this.#topology, this.#delays, await this.#consumersLink];
    const subscription = await Subscription.open(wish, { link, topology, delays, prefetchMax, retryMs, log });
    this.#subscriptions.add(subscription);
    // Perhaps the bus was closed meanwhile, and all its subscriptions but this one, which was not there yet.
    if (this.#closed) await subscription[Symbol.asyncDispose]();
    return {
      [Symbol.asyncDispose]: async () => {
        await subscription[Symbol.asyncDispose]();
        this.#subscriptions.delete(subscription);
      },
    };
  }

  async check(): Promise<BusInfo> {
    const { product, version } = await this.#link.server();
    const blocked = this.#link.whyBlocked;
    if (blocked === undefined) await this.#link.ask(async () => {});
    const warnings = [...this.#topology.warnings];
    if (blocked !== undefined) warnings.push(`RabbitMQ takes no messages (${blocked}): give it more memory or disk.`);
    return { engine: `${product} ${version}`, warnings };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // They come first, for what they give up may have to be put off, and that is published.
    await Promise.all([...this.#subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
    await this.#publisher[Symbol.asyncDispose]();
    await Promise.all([this.#link, await this.#consumersLink].map((link) => link?.[Symbol.asyncDispose]()));
  }

  async #prepare(): Promise<void> {
    await this.#topology.declareExchange(this.#link);
    const consumers = Object.entries(this.#settings.consumers ?? {});
    await Promise.all(
      consumers.map(([name, subjects]) => this.#topology.declareConsumer(this.#link, { name, subjects })),
    );
  }
}
