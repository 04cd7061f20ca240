/**
 * The connection to the server. It reconnects until it is disposed.
 *
 * While it is down, `nats()` and `request()` throw BusUnavailable at once. Messages sent just before it broke may or may not have
 * arrived; `onDown` informs those who wait for a response.
 */
import { JetStreamApiError, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import { BusUnavailable } from "@todoke/kernel/bus";
import { explainConnectionError } from "@todoke/kernel/server-url";
import { backoffMs, withTimeout } from "@todoke/kernel/worker";

export interface ConnectionSettings {
  /** For errors. */
  readonly url: string;
  readonly name: string;
  /** Options of the NATS client: servers, TLS, credentials and others. */
  readonly client: ConnectionOptions;
  readonly log: Log;
}

/** Receives events that concern no caller: lost connections, repairs. */
export type Log = (message: string, error?: unknown) => void;

/** Bounds one attempt to connect and one request to the server. */
export const requestTimeoutMs = 5_000;
/** The delay between attempts to connect. Most interruptions are short, so it begins small. */
const reconnectBackoff = { baseMs: 50, capMs: 2_000 };
/** A server that misses three pings is unreachable, even if TCP has not noticed: nine seconds after its host was cut off. */
const pingIntervalMs = 3_000;

export class Connection implements AsyncDisposable {
  readonly #settings: ConnectionSettings;
  readonly #closing = new AbortController();
  readonly #upListeners = new Set<() => void>();
  readonly #downListeners = new Set<() => void>();
  #nats: NatsConnection | undefined;
  #manager: JetStreamManager | undefined;
  #isUp = false;
  #failures = 0;
  #downReason: unknown = new Error("not connected yet");
  #connecting: Promise<void>;

  private constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#connecting = this.#tryToConnect();
  }

  /**
   * Resolves after the first attempt, also if it failed: a service must be able to start while the broker is unavailable.
   */
  static async open(settings: ConnectionSettings): Promise<Connection> {
    const connection = new Connection(settings);
    await connection.#connecting;
    return connection;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** The client's connection. Throws BusUnavailable while it is down. */
  nats(): NatsConnection {
    if (this.#closing.signal.aborted) throw new BusUnavailable("this bus is closed");
    if (this.#isUp && this.#nats) return this.#nats;
    throw unavailable(this.#downReason);
  }

  /** Calls the JetStream API. Throws JetStreamApiError if the server refuses the request, BusUnavailable for all other errors. */
  async request<Response>(call: (manager: JetStreamManager) => Promise<Response>): Promise<Response> {
    this.nats();
    if (!this.#manager) throw new BusUnavailable("no connection to NATS yet");
    const down = Promise.withResolvers<never>();
    using _ = this.onDown(() => down.reject(this.#downReason));
    try {
      return await Promise.race([call(this.#manager), down.promise]);
    } catch (error) {
      if (error instanceof JetStreamApiError) throw error;
      if (error instanceof Error && error.name === "JetStreamNotEnabled") {
        throw new BusUnavailable("JetStream is not enabled on the NATS server: start it with -js", { cause: error });
      }
      throw new BusUnavailable(`the NATS server did not answer: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Sends a message that needs no response. Does nothing while the connection is down: the server redelivers. */
  send(subject: string, payload: Uint8Array): void {
    if (!this.#isUp || !this.#nats || this.#nats.isClosed()) return;
    this.#nats.publish(subject, payload);
  }

  /** Resolves when the server has read everything that was sent, or cannot be reached. */
  async flush(): Promise<void> {
    if (!this.#isUp || !this.#nats || this.#nats.isClosed()) return;
    await withTimeout(requestTimeoutMs, this.#nats.flush()).catch(() => {});
  }

  onUp(listener: () => void): Disposable {
    return addListener(this.#upListeners, listener);
  }

  onDown(listener: () => void): Disposable {
    return addListener(this.#downListeners, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush();
    this.#closing.abort();
    this.#isUp = false;
    await this.#connecting;
    await withTimeout(requestTimeoutMs, this.#nats?.close()).catch(() => {});
  }

  /** Makes the first connection. After that the client reconnects, also to servers of the cluster that it has discovered. */
  async #tryToConnect(): Promise<void> {
    try {
      this.#nats = await connect(this.#clientOptions());
      this.#manager = await jetstreamManager(this.#nats, { checkAPI: false, timeout: requestTimeoutMs });
    } catch (cause) {
      const error = explainConnectionError(cause, "NATS", this.#settings.url);
      this.#downReason = error;
      this.#settings.log("cannot connect to NATS; retrying", unavailable(error));
      this.#retryLater();
      return;
    }
    this.#watch(this.#nats);
    this.#onConnected();
  }

  #retryLater(): void {
    if (this.#closing.signal.aborted) return;
    this.#failures += 1;
    const timer = setTimeout(() => {
      this.#connecting = this.#tryToConnect();
    }, this.#delayMs());
    this.#closing.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  async #watch(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === "disconnect") this.#onDisconnected(new Error(`the connection to ${status.server} broke`));
      if (status.type === "reconnecting") this.#failures += 1;
      if (status.type === "reconnect") this.#onConnected();
      if (status.type === "error") this.#onServerError(status.error);
    }
  }

  #onConnected(): void {
    this.#failures = 0;
    this.#isUp = true;
    for (const listener of [...this.#upListeners]) listener();
  }

  #onDisconnected(reason: Error): void {
    this.#isUp = false;
    this.#downReason = reason;
    if (!this.#closing.signal.aborted)
      this.#settings.log("lost the connection to NATS; reconnecting", unavailable(reason));
    for (const listener of [...this.#downListeners]) listener();
  }

  /** While it is down, the reason is what an operator needs to know: a certificate that has expired since, for example. */
  #onServerError(cause: Error): void {
    const error = explainConnectionError(cause, "NATS", this.#settings.url);
    if (!this.#isUp) this.#downReason = error;
    this.#settings.log("the NATS server reports an error", error);
  }

  /** Must have no side effect: the client calls it many times between two attempts. */
  #delayMs(): number {
    return backoffMs(this.#failures, reconnectBackoff);
  }

  #clientOptions(): ConnectionOptions {
    return {
      name: this.#settings.name,
      timeout: requestTimeoutMs,
      pingInterval: pingIntervalMs,
      maxPingOut: 2,
      reconnectDelayHandler: () => this.#delayMs(),
      ...this.#settings.client,
      maxReconnectAttempts: -1,
      // A password change must not stop the bus of a running service.
      ignoreAuthErrorAbort: true,
    };
  }
}

const unavailable = (cause: unknown) => new BusUnavailable(`no connection to NATS: ${messageOf(cause)}`, { cause });

function addListener(listeners: Set<() => void>, listener: () => void): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
