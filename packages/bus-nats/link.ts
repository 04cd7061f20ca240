/**
 * The connection to the server: made when the bus opens, and made again for ever after.
 *
 * While it is up, `connection()` hands it out; while it is not, everybody is told so at once. What was sent just before
 * it broke may or may not have arrived: those who wait for an answer hear of the break by `onDown`.
 */
import { JetStreamApiError, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import { BusUnavailable } from "@todoke/kernel/bus";
import { serversAt } from "./servers.ts";
import { within } from "./within.ts";

export interface LinkOptions {
  readonly url: string;
  readonly name: string;
  /** TLS, credentials and whatever else the NATS client takes. */
  readonly client?: ConnectionOptions;
  readonly log: Log;
}

/** Hears what no caller is told: lost connections, repairs. */
export type Log = (message: string, error?: unknown) => void;

/** One try to connect, and one question to the server, take no longer. */
export const answerMs = 5_000;
/** Between tries to connect: soon at first, for most breaks are short, and then seldom. */
const reconnectMs = { first: 50, cap: 2_000 };
/** A server that answers no ping for three of these is gone, whatever TCP thinks. */
const pingMs = 10_000;

export class Link implements AsyncDisposable {
  readonly #options: LinkOptions;
  readonly #servers: ConnectionOptions;
  readonly #closing = new AbortController();
  readonly #upListeners = new Set<() => void>();
  readonly #downListeners = new Set<() => void>();
  #connection: NatsConnection | undefined;
  #manager: JetStreamManager | undefined;
  #isUp = false;
  #failures = 0;
  #whyDown: unknown = new Error("not connected yet");
  #connecting: Promise<void>;

  private constructor(options: LinkOptions) {
    this.#options = options;
    this.#servers = serversAt(options.url);
    this.#connecting = this.#tryToConnect();
  }

  /**
   * Resolves after the first try, whatever came of it: a service must be able to start while the broker is away.
   * Rejects only for an address that cannot be read.
   */
  static async open(options: LinkOptions): Promise<Link> {
    const link = new Link(options);
    await link.#connecting;
    return link;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** The connection that is up now. Throws BusUnavailable when there is none. */
  connection(): NatsConnection {
    if (this.#closing.signal.aborted) throw new BusUnavailable("this bus is closed");
    if (this.#isUp && this.#connection) return this.#connection;
    throw new BusUnavailable(`no connection to NATS: ${messageOf(this.#whyDown)}`, { cause: this.#whyDown });
  }

  /**
   * Asks the server something about JetStream. A refusal comes as JetStreamApiError; everything else that can go wrong
   * means that the server could not be asked.
   */
  async ask<Answer>(question: (manager: JetStreamManager) => Promise<Answer>): Promise<Answer> {
    this.connection();
    if (!this.#manager) throw new BusUnavailable("no connection to NATS yet");
    const broke = Promise.withResolvers<never>();
    using _ = this.onDown(() => broke.reject(this.#whyDown));
    try {
      return await Promise.race([question(this.#manager), broke.promise]);
    } catch (error) {
      if (error instanceof JetStreamApiError) throw error;
      if (error instanceof Error && error.name === "JetStreamNotEnabled") {
        throw new BusUnavailable("JetStream is not enabled on the NATS server: start it with -js", { cause: error });
      }
      throw new BusUnavailable(`the NATS server did not answer: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Sends without an answer, if that can be done now. What it says will be asked for again if it is lost. */
  send(subject: string, payload: Uint8Array): void {
    if (!this.#isUp || !this.#connection || this.#connection.isClosed()) return;
    this.#connection.publish(subject, payload);
  }

  /** Resolves when the server has read all that was sent, or when waiting for it is of no use. */
  async flush(): Promise<void> {
    if (!this.#isUp || !this.#connection || this.#connection.isClosed()) return;
    await within(answerMs, this.#connection.flush()).catch(() => {});
  }

  onUp(listener: () => void): Disposable {
    return listening(this.#upListeners, listener);
  }

  onDown(listener: () => void): Disposable {
    return listening(this.#downListeners, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush();
    this.#closing.abort();
    this.#isUp = false;
    await this.#connecting;
    await within(answerMs, this.#connection?.close()).catch(() => {});
  }

  /** Until the first connection; after it the client connects again by itself, with all the servers it has learnt of. */
  async #tryToConnect(): Promise<void> {
    try {
      this.#connection = await connect(this.#clientOptions());
      this.#manager = await jetstreamManager(this.#connection, { checkAPI: false, timeout: answerMs });
    } catch (error) {
      this.#whyDown = error;
      this.#options.log("cannot connect to NATS; will try again", error);
      this.#tryAgainLater();
      return;
    }
    this.#watch(this.#connection);
    this.#rise();
  }

  #tryAgainLater(): void {
    if (this.#closing.signal.aborted) return;
    this.#failures += 1;
    const timer = setTimeout(() => {
      this.#connecting = this.#tryToConnect();
    }, this.#delayMs());
    this.#closing.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") this.#fall(new Error(`the connection to ${status.server} broke`));
      if (status.type === "reconnecting") this.#failures += 1;
      if (status.type === "reconnect") this.#rise();
      if (status.type === "error") this.#options.log("the NATS server reports an error", status.error);
    }
  }

  #rise(): void {
    this.#failures = 0;
    this.#isUp = true;
    for (const listener of [...this.#upListeners]) listener();
  }

  #fall(why: Error): void {
    this.#isUp = false;
    this.#whyDown = why;
    if (!this.#closing.signal.aborted) this.#options.log("lost the connection to NATS; connecting again", why);
    for (const listener of [...this.#downListeners]) listener();
  }

  /** The client asks for it many times between two tries: asking must change nothing. */
  #delayMs(): number {
    return Math.min(reconnectMs.cap, reconnectMs.first * 2 ** this.#failures) * (0.5 + Math.random());
  }

  #clientOptions(): ConnectionOptions {
    return {
      ...this.#servers,
      name: this.#options.name,
      timeout: answerMs,
      pingInterval: pingMs,
      maxPingOut: 2,
      reconnectDelayHandler: () => this.#delayMs(),
      ...this.#options.client,
      maxReconnectAttempts: -1,
      // A password that is being changed must not end the bus of a running service.
      ignoreAuthErrorAbort: true,
    };
  }
}

function listening(listeners: Set<() => void>, listener: () => void): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
