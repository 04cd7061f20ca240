/**
 * Pulls messages from one durable consumer.
 *
 * One request at a time is open at the server: "up to n messages during the next seconds". The server sends messages as they
 * come; when the request is used up or expired, the next one follows if there is room. If a request ends with an error or
 * without a response, the consumer or its stream may be gone and is created again. (A server does not respond to a
 * request for a consumer that it does not know.)
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AckPolicy, type ConsumerConfig, DeliverPolicy, JetStreamApiError } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, type Subscription } from "@nats-io/nats-core";
import { backoffMs, withTimeout } from "@todoke/kernel/worker";
import { type Connection, type Log, messageOf, requestTimeoutMs } from "./connection.ts";
import type { DurableName } from "./names.ts";
import type { Streams } from "./streams.ts";

export interface PullerOptions {
  readonly connection: Connection;
  readonly streams: Streams;
  readonly log: Log;
  readonly name: DurableName;
  readonly ackWaitMs: number;
  readonly ackPendingMax: number;
  readonly inboxPrefix: string | undefined;
  /** The most messages without an ack. */
  readonly inFlightMax: number;
  /** The messages that have no ack yet. */
  readonly inFlight: () => Load;
  readonly onMessage: (message: Msg) => void;
}

interface Load {
  readonly messages: number;
  readonly bytes: number;
}

/** The server ends a request after this time and says so. */
const requestMs = 3_000;
/** The server has this much longer to say so. */
const graceMs = 1_500;
const repairBackoff = { baseMs: 50, capMs: 5_000 };
/** An upper bound of the bytes that the server counts besides the payload: headers, subject, reply subject. */
const frameBytesMax = 65_536;
/** The most payload bytes without an ack, unless two messages can be larger. */
const inFlightBytesMax = 32 * 1024 * 1024;
/** The normal ends of a request that is not used up: it has expired, or the next message does not fit. */
const isExpired = (code: number, description: string) =>
  code === 408 || (code === 409 && description.startsWith("Message Size"));

export class Puller {
  readonly #options: PullerOptions;
  readonly #inbox: string;
  readonly #upListener: Disposable;
  readonly #downListener: Disposable;
  readonly #stopping = new AbortController();
  #inboxSubscription: Subscription | undefined;
  #subscribedOn: NatsConnection | undefined;
  /** The open request, and the number of messages that it may still bring. */
  #request = 0;
  #expected = 0;
  #overdueTimer: NodeJS.Timeout | undefined;
  #isRepairing = false;

  constructor(options: PullerOptions) {
    this.#options = options;
    this.#inbox = `${createInbox(options.inboxPrefix)}.`;
    this.#upListener = options.connection.onUp(() => this.pull());
    // A request does not survive its connection.
    this.#downListener = options.connection.onDown(() => this.#endRequest());
  }

  /** Creates the consumer if needed and pulls. Rejects if the server is unavailable or refuses. */
  async start(): Promise<void> {
    await this.#ensureConsumer();
    this.pull();
  }

  /** Requests as many messages as there is room for, unless a request is open. Call it when messages have been acked. */
  pull(): void {
    if (this.#stopping.signal.aborted || this.#isRepairing || this.#expected > 0) return;
    const nats = this.#subscribe();
    if (!nats) return;
    const inFlight = this.#options.inFlight();
    const messages = this.#options.inFlightMax - inFlight.messages;
    // There must be room for the largest message: it may be the next one.
    const largest = (nats.info?.max_payload ?? 0) + frameBytesMax;
    const bytes = Math.max(inFlightBytesMax, 2 * largest) - inFlight.bytes;
    if (messages <= 0 || bytes < largest) return;

    const { stream, durable } = this.#options.name;
    this.#expected = messages;
    this.#request += 1;
    this.#overdueTimer = setTimeout(() => this.#repair("nothing"), requestMs + graceMs);
    const request = JSON.stringify({ batch: messages, max_bytes: bytes, expires: nanos(requestMs) });
    const reply = this.#inbox + this.#request;
    nats.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, request, { reply });
  }

  /** Resolves when the server has stopped sending and everything that it sent has arrived. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#upListener[Symbol.dispose]();
    this.#downListener[Symbol.dispose]();
    this.#endRequest();
    await withTimeout(requestTimeoutMs, this.#inboxSubscription?.drain()).catch(() => {});
  }

  /** Subscribes to our inbox. Returns undefined while the connection is down; `pull` runs again when it is up. */
  #subscribe(): NatsConnection | undefined {
    try {
      const nats = this.#options.connection.nats();
      if (this.#subscribedOn === nats) return nats;
      this.#inboxSubscription = nats.subscribe(`${this.#inbox}*`, {
        callback: (_, message) => this.#receive(message),
      });
      this.#subscribedOn = nats;
      return nats;
    } catch {
      return undefined;
    }
  }

  #receive(message: Msg): void {
    // Messages of the stream have their own subject. The subject of our inbox is a status of the request.
    if (message.subject.startsWith(this.#inbox)) this.#onStatus(message);
    else this.#onMessage(message);
  }

  #onMessage(message: Msg): void {
    this.#expected = Math.max(0, this.#expected - 1);
    this.#options.onMessage(message);
    if (this.#expected === 0) this.#pullAgain();
  }

  #onStatus(message: Msg): void {
    if (message.subject !== this.#inbox + this.#request) return;
    const { code = 0, description = "" } = message.headers ?? {};
    if (isExpired(code, description)) this.#pullAgain();
    else void this.#repair(`${code} ${description}`);
  }

  #pullAgain(): void {
    this.#endRequest();
    this.pull();
  }

  #endRequest(): void {
    clearTimeout(this.#overdueTimer);
    this.#expected = 0;
  }

  async #repair(response: string): Promise<void> {
    this.#endRequest();
    if (this.#isRepairing || this.#stopping.signal.aborted) return;
    const { connection, log, name, streams } = this.#options;
    this.#isRepairing = true;
    log(`the consumer ${name.durable} of ${name.stream} answered "${response}"; checking that it exists`);
    let failure: string | undefined = response;
    // While the connection is down there is nothing to repair: `pull` runs again when it is up.
    for (let attempt = 1; failure && connection.isUp; attempt++) {
      await sleep(backoffMs(attempt, repairBackoff), undefined, { signal: this.#stopping.signal }).catch(() => {});
      if (this.#stopping.signal.aborted) return;
      streams.forget(name.stream);
      failure = await this.#ensureConsumer().then(() => undefined, messageOf);
      if (failure) log(`the consumer ${name.durable} of ${name.stream} cannot be created: ${failure}`);
    }
    this.#isRepairing = false;
    this.pull();
  }

  async #ensureConsumer(): Promise<void> {
    const { connection, streams, name, ackWaitMs, ackPendingMax } = this.#options;
    const config: Partial<ConsumerConfig> = {
      durable_name: name.durable,
      filter_subject: name.filter,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ackWaitMs),
      // The inbox limits attempts. A message that reaches a limit of the server would disappear silently.
      max_deliver: -1,
      max_ack_pending: ackPendingMax,
    };
    await streams.ensure(name.stream);
    try {
      await connection.request((manager) => manager.consumers.add(name.stream, config));
    } catch (error) {
      if (!hasOtherConfig(error)) throw error;
      await connection.request((manager) => manager.consumers.update(name.stream, name.durable, config));
    }
  }
}

/** The consumer exists with another ack wait or limit. Servers before 2.10 change it without this error. */
const consumerExists = 10148;
const hasOtherConfig = (error: unknown) => error instanceof JetStreamApiError && error.code === consumerExists;
