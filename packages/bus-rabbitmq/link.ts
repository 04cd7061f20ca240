/**
 * One connection to the broker: made when the bus opens, and made again for ever after.
 *
 * While it is up, it hands out channels; while it is not, or while the broker takes no messages, everybody is told so at
 * once. Nothing here throws into the process: a broken connection closes its channels, and those who hold one hear of it.
 */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { BusUnavailable } from "@todoke/kernel/bus";
import { AMQPChannelError, AMQPConnectionError, AMQPError, type Channel, Connection } from "rabbitmq-client";
import { type Address, askServer, type Server } from "./server.ts";
import { within } from "./within.ts";

/** Hears what no caller is told: lost connections, repairs. */
export type Log = (message: string, error?: unknown) => void;

export interface LinkOptions {
  /** amqp://user:password@host:5672/vhost, or amqps://… */
  readonly url: string;
  /** "host:port" of each node of a cluster, tried in turn; user, password and vhost come from the URL. */
  readonly hosts?: readonly string[];
  readonly tls?: TlsOptions;
  /** What the broker's operator sees. */
  readonly name: string;
  readonly log: Log;
}

/** One try to connect, and one question to the broker, take no longer. */
const answerMs = 5_000;
/** How long a farewell may take: past it the broker finds out by itself. */
const farewellMs = 2_000;
/** Between tries to connect: soon at first, for most breaks are short, and then seldom. */
const reconnectMs = { first: 100, cap: 2_000 };
/** A broker that is silent for two of these is gone, whatever TCP thinks. */
const heartbeatSeconds = 10;

export class Link implements AsyncDisposable {
  readonly #options: LinkOptions;
  readonly #connection: Connection;
  #isClosed = false;
  #whyDown: unknown = new Error("not connected yet");
  #whyBlocked: string | undefined;
  #server: Promise<Server> | undefined;

  private constructor(options: LinkOptions) {
    this.#options = options;
    this.#connection = new Connection({
      url: options.url,
      ...(options.hosts && { hosts: [...options.hosts] }),
      ...(options.tls && { tls: options.tls }),
      connectionName: options.name,
      connectionTimeout: answerMs,
      acquireTimeout: answerMs,
      heartbeat: heartbeatSeconds,
      retryLow: reconnectMs.first,
      retryHigh: reconnectMs.cap,
      // Acknowledgements are small and must not wait for company.
      noDelay: true,
    });
    this.#connection.on("connection", () => this.#rise());
    this.#connection.on("error", (error) => this.#hearError(error));
    this.#connection.on("connection.blocked", (reason) => this.#block(reason));
    this.#connection.on("connection.unblocked", () => this.#unblock());
  }

  /** Resolves after the first try, whatever came of it: a service must be able to start while the broker is away. */
  static async open(options: LinkOptions): Promise<Link> {
    const link = new Link(options);
    const tried = new Promise<void>((resolve) => {
      link.#connection.once("connection", resolve);
      link.#connection.once("error", () => resolve());
    });
    await within(answerMs, "connect", tried).catch(() => {});
    return link;
  }

  /** Why the broker takes no messages from this connection, while it does not. */
  get whyBlocked(): string | undefined {
    return this.#whyBlocked;
  }

  /** A channel of the caller's own, to be closed with `closeChannel`. Rejects with BusUnavailable when there is none. */
  async acquire(): Promise<Channel> {
    this.#assertUp();
    if (this.#whyBlocked !== undefined) {
      throw new BusUnavailable(`RabbitMQ takes no messages at the moment: ${this.#whyBlocked}`);
    }
    const acquiring = this.#connection.acquire();
    try {
      return await within(answerMs, "open a channel", acquiring);
    } catch (error) {
      acquiring.then(closeChannel, () => {});
      throw asUnavailable(error);
    }
  }

  /** Asks something on a channel for this one question, since a refusal closes the channel. Refusals come as AMQPError. */
  async ask<Answer>(question: (channel: Channel) => Promise<Answer>): Promise<Answer> {
    const channel = await this.acquire();
    try {
      return await within(answerMs, "answer", question(channel));
    } catch (error) {
      throw isRefusal(error) ? error : asUnavailable(error);
    } finally {
      void closeChannel(channel);
    }
  }

  /** Who the broker is, asked once for every connection: it may have been upgraded in between. */
  server(): Promise<Server> {
    this.#assertUp();
    this.#server ??= this.#askAnyNode().catch((error) => {
      this.#server = undefined;
      throw asUnavailable(error);
    });
    return this.#server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await within(farewellMs, "say goodbye", this.#connection.close()).catch(() => this.#connection.unsafeDestroy());
  }

  #assertUp(): void {
    if (this.#isClosed) throw new BusUnavailable("this bus is closed");
    // A blocked connection counts as not ready for the library, though it is up.
    if (this.#connection.ready || this.#whyBlocked !== undefined) return;
    throw new BusUnavailable(`no connection to RabbitMQ: ${messageOf(this.#whyDown)}`, { cause: this.#whyDown });
  }

  async #askAnyNode(): Promise<Server> {
    let failure: unknown;
    for (const address of addressesOf(this.#options)) {
      try {
        return await askServer(address, answerMs);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  #rise(): void {
    this.#whyBlocked = undefined;
    this.#server = undefined;
  }

  /** Of failures to connect in a row the library tells the first. It also tells here what closed a channel unasked. */
  #hearError(error: unknown): void {
    const isOfChannel = error instanceof AMQPChannelError && !(error instanceof AMQPConnectionError);
    if (!isOfChannel) {
      this.#whyDown = error;
      this.#whyBlocked = undefined;
    }
    const what = isOfChannel ? "RabbitMQ closed a channel" : "no connection to RabbitMQ; will try again";
    if (!this.#isClosed) this.#options.log(`${this.#options.name}: ${what}`, error);
  }

  #block(reason: string): void {
    this.#whyBlocked = reason;
    this.#options.log(`${this.#options.name}: RabbitMQ takes no messages for now: ${reason}`);
  }

  #unblock(): void {
    this.#whyBlocked = undefined;
    this.#options.log(`${this.#options.name}: RabbitMQ takes messages again`);
  }
}

/** Resolves when the broker has heard all that was said on the channel, or when waiting for that is of no use. */
export async function closeChannel(channel: Channel): Promise<void> {
  await within(farewellMs, "close a channel", channel.close()).catch(() => {});
}

/** What the broker says when it understood and will not; everything else may be different in a moment. */
type Refusal = "ACCESS_REFUSED" | "NOT_ALLOWED" | "NOT_FOUND" | "PRECONDITION_FAILED";
const refusals: ReadonlySet<string> = new Set<Refusal>([
  "ACCESS_REFUSED",
  "NOT_ALLOWED",
  "NOT_FOUND",
  "PRECONDITION_FAILED",
]);

/** True of this refusal, or of any. */
export function isRefusal(error: unknown, which?: Refusal): error is AMQPError {
  return error instanceof AMQPError && (which === undefined ? refusals.has(error.code) : which === error.code);
}

export function asUnavailable(error: unknown): BusUnavailable {
  if (error instanceof BusUnavailable) return error;
  const what = isRefusal(error) ? "RabbitMQ refuses" : "RabbitMQ could not be asked";
  return new BusUnavailable(`${what}: ${messageOf(error)}`, { cause: error });
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function addressesOf({ url, hosts, tls }: LinkOptions): Address[] {
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
