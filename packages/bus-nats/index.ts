/**
 * The event bus on NATS JetStream. README.md describes its guarantees, its limits and the set-up of a server.
 *
 * The bus opens also while the server is unavailable, and reconnects until it is closed. While there is no connection, publish
 * and subscribe reject with BusUnavailable.
 */
import type { ConnectionOptions } from "@nats-io/transport-node";
import { BusUnavailable, type EventBus } from "@todoke/kernel/bus";
import { Connection, type Log } from "./connection.ts";
import { readLag } from "./lag.ts";
import { createNames } from "./names.ts";
import { Publisher } from "./publisher.ts";
import { parseNatsUrl } from "./servers.ts";
import { type StreamDefaults, Streams, streamDefaults } from "./streams.ts";
import { Subscription } from "./subscription.ts";

export interface NatsBusOptions {
  /**
   * "nats://user:password@host:4222"; several servers of a cluster are separated by commas. Parameters: ca_file, cert_file, key_file,
   * creds_file, replicas, max_bytes, namespace.
   */
  readonly url: string;
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Separates this bus from others on the same server: "staging". */
  readonly namespace?: string;
  /** How long a process may be silent before the server redelivers its messages. */
  readonly ackWaitMs?: number;
  /** How long publish waits for the ack of the server. */
  readonly publishTimeoutMs?: number;
  /** The most messages of a consumer, over all its processes, that are in flight or wait for a retry. */
  readonly ackPendingMax?: number;
  /** For streams that do not exist yet. */
  readonly streams?: Partial<StreamDefaults>;
  /** Options of the NATS client: TLS, credentials and others. */
  readonly client?: ConnectionOptions;
  /** Receives events that concern no caller: lost connections, repairs, handlers that throw. */
  readonly log?: Log;
}

export async function openNatsBus(options: NatsBusOptions): Promise<EventBus> {
  const { url, name, ackWaitMs = 30_000, publishTimeoutMs = 5_000, ackPendingMax = 10_000, log = () => {} } = options;
  const given = parseNatsUrl(url);
  const client = { ...given.client, ...options.client };
  const names = createNames(options.namespace ?? given.namespace);
  const connection = await Connection.open({ url, name, client, log });
  const streams = new Streams({
    connection,
    names,
    defaults: { ...streamDefaults, ...given.streams, ...options.streams },
  });
  const inboxPrefix = client.inboxPrefix;
  const publisher = new Publisher({ connection, names, streams, inboxPrefix, timeoutMs: publishTimeoutMs });
  const subscriptions = new Set<Subscription>();
  let isClosing = false;

  return {
    publish: (events) => publisher.publish(events),
    async subscribe(request) {
      const context = { connection, names, streams, log, ackWaitMs, ackPendingMax, inboxPrefix };
      const subscription = await Subscription.open(request, context);
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
      const version = connection.nats().info?.version ?? "of unknown version";
      return { engine: `nats-server ${version}`, warnings: await streams.warnings() };
    },
    readLag: (consumer, subjects) => readLag(connection, names.durables(consumer, subjects)),
    async [Symbol.asyncDispose]() {
      isClosing = true;
      await Promise.all([...subscriptions].map((subscription) => subscription[Symbol.asyncDispose]()));
      await publisher[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
}
