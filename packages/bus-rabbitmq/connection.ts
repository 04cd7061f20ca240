/**
 * A connection to the broker. It reconnects until it is disposed.
 *
 * While it is down, or the broker has blocked it, all calls reject with BusUnavailable at once. A broken connection closes its
 * channels; it throws no uncaught error.
 */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { BusUnavailable } from "@todoke/kernel/bus";
import { explainConnectionError } from "@todoke/kernel/server-url";
import {
  AMQPChannelError,
  AMQPConnectionError,
  AMQPError,
  Connection as AmqpConnection,
  type Channel,
} from "rabbitmq-client";
import { type Address, identifyServer, type Server } from "./server.ts";
import { withTimeout } from "./with-timeout.ts";

/** Receives events that concern no caller: lost connections, repairs. */
export type Log = (message: string, error?: unknown) => void;

export interface ConnectionSettings {
  /** amqp://user:password@host:5672/vhost, or amqps://… */
  readonly url: string;
  /** "host:port" of each node of a cluster, tried in turn. User, password and vhost are those of the URL. */
  readonly hosts?: readonly string[];
  readonly tls?: TlsOptions;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  readonly log: Log;
}

/** Bounds one attempt to connect and one request to the broker. */
export const requestTimeoutMs = 5_000;
/** Bounds the orderly close of a connection or channel. After that the broker notices the lost connection. */
const closeTimeoutMs = 2_000;
/** The delay between attempts to connect. Most interruptions are short, so it begins small. */
const reconnectMs = { first: 100, cap: 2_000 };
/** A broker that misses two heartbeats is unreachable, even if TCP has not noticed. */
const heartbeatSeconds = 10;

export class Connection implements AsyncDisposable {
  readonly #settings: ConnectionSettings;
  readonly #amqp: AmqpConnection;
  #isClosed = false;
  #hasConnected = false;
  #downReason: unknown = new Error("not connected yet");
  #blockedReason: string | undefined;
  #server: Promise<Server> | undefined;

  private constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#amqp = new AmqpConnection({
      url: settings.url,
      ...(settings.hosts && { hosts: [...settings.hosts] }),
      ...(settings.tls && { tls: settings.tls }),
      connectionName: settings.name,
      connectionTimeout: requestTimeoutMs,
      acquireTimeout: requestTimeoutMs,
      heartbeat: heartbeatSeconds,
      retryLow: reconnectMs.first,
      retryHigh: reconnectMs.cap,
      // Acks are small and must not wait for more data.
      noDelay: true,
    });
    this.#amqp.on("connection", () => this.#onConnected());
    this.#amqp.on("error", (error) => this.#onError(error));
    this.#amqp.on("connection.blocked", (reason) => this.#onBlocked(reason));
    this.#amqp.on("connection.unblocked", () => this.#onUnblocked());
  }

  /** Resolves after the first attempt, also if it failed: a service must be able to start while the broker is unavailable. */
  static async open(settings: ConnectionSettings): Promise<Connection> {
    const connection = new Connection(settings);
    const attempted = new Promise<void>((resolve) => {
      connection.#amqp.once("connection", resolve);
      connection.#amqp.once("error", () => resolve());
    });
    await withTimeout(requestTimeoutMs, "connect", attempted).catch(() => {});
    return connection;
  }

  /** Why the broker accepts no messages from this connection; undefined if it does. */
  get blockedReason(): string | undefined {
    return this.#blockedReason;
  }

  /** The caller closes it with `closeChannel`. Rejects with BusUnavailable. */
  async acquireChannel(): Promise<Channel> {
    this.#assertUp();
    if (this.#blockedReason !== undefined) {
      throw new BusUnavailable(`RabbitMQ accepts no messages at the moment: ${this.#blockedReason}`);
    }
    const acquiring = this.#amqp.acquire();
    try {
      return await withTimeout(requestTimeoutMs, "open a channel", acquiring);
    } catch (error) {
      acquiring.then(closeChannel, () => {});
      throw toUnavailable(error);
    }
  }

  /** Makes a request on a channel of its own, because a refusal closes the channel. Rejects with AMQPError if refused. */
  async request<Response>(call: (channel: Channel) => Promise<Response>): Promise<Response> {
    const channel = await this.acquireChannel();
    try {
      return await withTimeout(requestTimeoutMs, "answer", call(channel));
    } catch (error) {
      throw isRefusal(error) ? error : toUnavailable(error);
    } finally {
      void closeChannel(channel);
    }
  }

  /** Product and version of the broker, requested once per connection: it may have been upgraded in between. */
  server(): Promise<Server> {
    this.#assertUp();
    this.#server ??= this.#identifyAnyNode().catch((error) => {
      this.#server = undefined;
      throw toUnavailable(error);
    });
    return this.#server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await withTimeout(closeTimeoutMs, "close the connection", this.#amqp.close()).catch(() =>
      this.#amqp.unsafeDestroy(),
    );
  }

  #assertUp(): void {
    if (this.#isClosed) throw new BusUnavailable("this bus is closed");
    // For the library a blocked connection is not ready, though it is up.
    if (this.#amqp.ready || this.#blockedReason !== undefined) return;
    throw noConnection(this.#downReason);
  }

  async #identifyAnyNode(): Promise<Server> {
    let failure: unknown;
    for (const address of parseAddresses(this.#settings)) {
      try {
        return await identifyServer(address, requestTimeoutMs);
      } catch (error) {
        failure = error;
      }
    }
    throw explainConnectionError(failure, "RabbitMQ", describeUrl(this.#settings));
  }

  #onConnected(): void {
    this.#hasConnected = true;
    this.#blockedReason = undefined;
    this.#server = undefined;
  }

  /** The library reports the first of several failures to connect, and errors that closed a channel. */
  #onError(cause: unknown): void {
    const isChannelError = cause instanceof AMQPChannelError && !(cause instanceof AMQPConnectionError);
    // A node that has answered and then closes a connection without TLS is being stopped, and needs no explanation.
    const isKnown = isChannelError || (this.#hasConnected && !this.#settings.url.startsWith("amqps:"));
    const error = isKnown ? cause : explainConnectionError(cause, "RabbitMQ", describeUrl(this.#settings));
    if (!isChannelError) {
      this.#downReason = error;
      this.#blockedReason = undefined;
    }
    const message = isChannelError ? "RabbitMQ closed a channel" : "no connection to RabbitMQ; retrying";
    const reason = isChannelError ? error : noConnection(error);
    if (!this.#isClosed) this.#settings.log(`${this.#settings.name}: ${message}`, reason);
  }

  #onBlocked(reason: string): void {
    this.#blockedReason = reason;
    this.#settings.log(`${this.#settings.name}: RabbitMQ accepts no messages for now: ${reason}`);
  }

  #onUnblocked(): void {
    this.#blockedReason = undefined;
    this.#settings.log(`${this.#settings.name}: RabbitMQ accepts messages again`);
  }
}

const noConnection = (cause: unknown) =>
  new BusUnavailable(`no connection to RabbitMQ: ${messageOf(cause)}`, { cause });

/** Resolves when the broker has read everything that was sent on the channel, or cannot be reached. */
export async function closeChannel(channel: Channel): Promise<void> {
  await withTimeout(closeTimeoutMs, "close a channel", channel.close()).catch(() => {});
}

/** Codes of permanent refusals. All other errors may be gone a moment later. */
type RefusalCode = "ACCESS_REFUSED" | "NOT_ALLOWED" | "NOT_FOUND" | "PRECONDITION_FAILED";
const refusalCodes: ReadonlySet<string> = new Set<RefusalCode>([
  "ACCESS_REFUSED",
  "NOT_ALLOWED",
  "NOT_FOUND",
  "PRECONDITION_FAILED",
]);

/** Without a code, any refusal matches. */
export function isRefusal(error: unknown, code?: RefusalCode): error is AMQPError {
  return error instanceof AMQPError && (code === undefined ? refusalCodes.has(error.code) : code === error.code);
}

export function toUnavailable(error: unknown): BusUnavailable {
  if (error instanceof BusUnavailable) return error;
  const summary = isRefusal(error) ? "RabbitMQ refuses the request" : "RabbitMQ is unavailable";
  return new BusUnavailable(`${summary}: ${messageOf(error)}`, { cause: error });
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** With all nodes, for errors. */
const describeUrl = ({ url, hosts }: ConnectionSettings): string =>
  hosts ? url.replace(new URL(url).host, hosts.join()) : url;

function parseAddresses({ url, hosts, tls }: ConnectionSettings): Address[] {
  const { protocol, host } = new URL(url);
  const secure = protocol === "amqps:" || tls !== undefined;
  return (hosts ?? [host]).map((node) => {
    const { hostname, port } = new URL(`amqp://${node}`);
    return {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || (secure ? 5671 : 5672)),
      tls: secure ? { ...tls } : undefined,
    };
  });
}
