/**
 * The event bus on NATS JetStream. README.md says what it promises, what it cannot, and how to set up a server for it.
 *
 * Opening never fails because the server is away: the bus connects when it can, and again whenever it must, for ever.
 * Until then publishing and subscribing reject with BusUnavailable.
 */
import type { ConnectionOptions } from "@nats-io/transport-node";
import { BusUnavailable, type EventBus } from "@todoke/kernel/bus";
import { Link, type Log } from "./link.ts";
import { namesIn } from "./names.ts";
import { Publisher } from "./publisher.ts";
import { type StreamDefaults, Streams, streamDefaults } from "./streams.ts";
import { Subscription } from "./subscription.ts";

export interface NatsBusOptions {
  /** "nats://user:password@host:4222"; several servers of a cluster are separated by commas. */
  readonly url: string;
  /** Shown in the server's list of connections, so that an operator sees who is there. */
  readonly name: string;
  /** Keeps this bus apart from others on the same server: "staging". */
  readonly place?: string;
  /** How long the server waits for a sign of life of a process before it gives its messages to others. */
  readonly ackWaitMs?: number;
  /** How long publish waits for the server to say "stored". */
  readonly publishTimeoutMs?: number;
  /** The most messages of a consumer that are handled or wait for their retry, over all processes. */
  readonly ackPendingMax?: number;
  /** For streams that do not exist yet. */
  readonly streams?: Partial<StreamDefaults>;
  /** TLS, credentials and whatever else the NATS client takes. */
  readonly client?: ConnectionOptions;
  /** Hears what no caller is told: lost connections, repairs, handlers that throw. */
  readonly log?: Log;
}

export async function openNatsBus(options: NatsBusOptions): Promise<EventBus> {
  const { url, name, ackWaitMs = 30_000, publishTimeoutMs = 5_000, ackPendingMax = 10_000, log = () => {} } = options;
  const { client = {} } = options;
  const names = namesIn(options.place);
  const link = await Link.open({ url, name, client, log });
  const streams = new Streams({ link, names, wanted: { ...streamDefaults, ...options.streams } });
  const inboxPrefix = client.inboxPrefix;
  const publisher = new Publisher({ link, names, streams, inboxPrefix, timeoutMs: publishTimeoutMs });
  const subscriptions = new Set<Subscription>();
  let isClosing = false;

  return {
    publish: (events) => publisher.publish(events),
    async subscribe(wish) {
      const about = { link, names, streams, log, ackWaitMs, ackPendingMax, inboxPrefix };
      const subscription = await Subscription.open(wish, about);
      if (isClosing) {
        await subscription[Symbol.asyncDispose]();
        throw new BusUnavailable("this bus is closed");
      }
      subscriptions.add(subscription);
      return {
        async [Symbol.asyncDispose]() {
          await subscription[Symbol.asyncDispose]();
          subscriptions.delete(subscription);
        },
      };
    },
    async check() {
      const version = link.connection().info?.version ?? "of unknown version";
      return { engine: `nats-server ${version}`, warnings: await streams.warnings() };
    },
    async [Symbol.asyncDispose]() {
      isClosing = true;
      await Promise.all([...subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
      await publisher[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  };
}
