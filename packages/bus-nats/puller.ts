/**
 * Asks one durable consumer for messages, and keeps asking.
 *
 * One request at a time is open at the server: "up to n, as they come, for some seconds". The server sends what there is
 * at once and what comes later when it comes; when the request is used up or over, the next one follows if there is
 * room. A request that ends in an error, or in silence, means that the consumer or its stream may be gone: then it is
 * made again. (A server says nothing at all about a request to a consumer that it does not know.)
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AckPolicy, type ConsumerConfig, DeliverPolicy, JetStreamApiError } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, type Subscription } from "@nats-io/nats-core";
import { answerMs, type Link, type Log, messageOf } from "./link.ts";
import type { DurableName } from "./names.ts";
import type { Streams } from "./streams.ts";
import { within } from "./within.ts";

export interface PullerOptions {
  readonly link: Link;
  readonly streams: Streams;
  readonly log: Log;
  readonly name: DurableName;
  readonly ackWaitMs: number;
  readonly ackPendingMax: number;
  readonly inboxPrefix: string | undefined;
  /** The most messages held at once. */
  readonly holdMax: number;
  /** What is held now. */
  readonly held: () => Load;
  readonly take: (message: Msg) => void;
}

interface Load {
  readonly messages: number;
  readonly bytes: number;
}

/** A request stays open for so long, and then the server says that it is over. */
const requestMs = 3_000;
/** Later than this it is not going to say so. */
const graceMs = 1_500;
const repairMs = { first: 100, cap: 5_000 };
/** What the server adds to a payload when it counts bytes: headers, subject, where to answer. */
const frameBytesMax = 65_536;
/** The most payload bytes held at once, unless two messages can be larger than that. */
const holdBytesMax = 32 * 1024 * 1024;
/** A request's ordinary ends besides being used up: its time is over, or the next message does not fit. */
const isOver = (code: number, description: string) =>
  code === 408 || (code === 409 && description.startsWith("Message Size"));

export class Puller {
  readonly #options: PullerOptions;
  readonly #inbox: string;
  readonly #up: Disposable;
  readonly #down: Disposable;
  readonly #stopping = new AbortController();
  #inboxSubscription: Subscription | undefined;
  #listeningOn: NatsConnection | undefined;
  /** The open request, and what it may still bring. */
  #request = 0;
  #owed = 0;
  #overdue: NodeJS.Timeout | undefined;
  #isRepairing = false;

  constructor(options: PullerOptions) {
    this.#options = options;
    this.#inbox = `${createInbox(options.inboxPrefix)}.`;
    this.#up = options.link.onUp(() => this.ask());
    // What was asked for on a connection that broke will not come on the next one.
    this.#down = options.link.onDown(() => this.#endRequest());
  }

  /** Makes sure of the consumer, then asks. Rejects when the server cannot be asked or refuses. */
  async start(): Promise<void> {
    await this.#ensureConsumer();
    this.ask();
  }

  /** Asks for as much as there is room for, unless a request is open already. Call it whenever room was made. */
  ask(): void {
    if (this.#stopping.signal.aborted || this.#isRepairing || this.#owed > 0) return;
    const connection = this.#listen();
    if (!connection) return;
    const held = this.#options.held();
    const messages = this.#options.holdMax - held.messages;
    // Room for less than the largest message is no room: the next one may be just that.
    const largest = (connection.info?.max_payload ?? 0) + frameBytesMax;
    const bytes = Math.max(holdBytesMax, 2 * largest) - held.bytes;
    if (messages <= 0 || bytes < largest) return;

    const { stream, durable } = this.#options.name;
    this.#owed = messages;
    this.#request += 1;
    this.#overdue = setTimeout(() => this.#repair("nothing"), requestMs + graceMs);
    const request = JSON.stringify({ batch: messages, max_bytes: bytes, expires: nanos(requestMs) });
    const reply = this.#inbox + this.#request;
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, request, { reply });
  }

  /** Resolves when the server has stopped sending, and all that it had sent has come. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#up[Symbol.dispose]();
    this.#down[Symbol.dispose]();
    this.#endRequest();
    await within(answerMs, this.#inboxSubscription?.drain()).catch(() => {});
  }

  /** The connection that our inbox is heard on. */
  #listen(): NatsConnection | undefined {
    try {
      const connection = this.#options.link.connection();
      if (this.#listeningOn === connection) return connection;
      this.#inboxSubscription = connection.subscribe(`${this.#inbox}*`, {
        callback: (_, message) => this.#hear(message),
      });
      this.#listeningOn = connection;
      return connection;
    } catch {
      // Down: we are called again when it is up.
      return undefined;
    }
  }

  #hear(message: Msg): void {
    // A message of the stream comes under its own subject; what comes under our inbox is the server's word on a request.
    if (message.subject.startsWith(this.#inbox)) this.#hearStatus(message);
    else this.#hearMessage(message);
  }

  #hearMessage(message: Msg): void {
    this.#owed = Math.max(0, this.#owed - 1);
    this.#options.take(message);
    if (this.#owed === 0) this.#askAgain();
  }

  #hearStatus(message: Msg): void {
    if (message.subject !== this.#inbox + this.#request) return;
    const { code = 0, description = "" } = message.headers ?? {};
    if (isOver(code, description)) this.#askAgain();
    else void this.#repair(`${code} ${description}`);
  }

  #askAgain(): void {
    this.#endRequest();
    this.ask();
  }

  #endRequest(): void {
    clearTimeout(this.#overdue);
    this.#owed = 0;
  }

  async #repair(why: string): Promise<void> {
    this.#endRequest();
    if (this.#isRepairing || this.#stopping.signal.aborted) return;
    const { link, log, name, streams } = this.#options;
    this.#isRepairing = true;
    log(`the consumer ${name.durable} of ${name.stream} answered "${why}"; making sure of it`);
    let failure: string | undefined = why;
    // While the connection is down there is nothing to mend: when it is up we ask again, and shall see.
    for (let delayMs = repairMs.first; failure && link.isUp; delayMs = Math.min(2 * delayMs, repairMs.cap)) {
      await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
      if (this.#stopping.signal.aborted) return;
      streams.forget(name.stream);
      failure = await this.#ensureConsumer().then(() => undefined, messageOf);
      if (failure) log(`the consumer ${name.durable} of ${name.stream} cannot be made: ${failure}`);
    }
    this.#isRepairing = false;
    this.ask();
  }

  async #ensureConsumer(): Promise<void> {
    const { link, streams, name, ackWaitMs, ackPendingMax } = this.#options;
    const config: Partial<ConsumerConfig> = {
      durable_name: name.durable,
      filter_subject: name.filter,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ackWaitMs),
      // Attempts are counted, and ended, by the inbox: here a message that reached a limit would vanish without a word.
      max_deliver: -1,
      max_ack_pending: ackPendingMax,
    };
    await streams.ensure(name.stream);
    try {
      await link.ask((manager) => manager.consumers.add(name.stream, config));
    } catch (error) {
      if (!isOtherwiseConfigured(error)) throw error;
      await link.ask((manager) => manager.consumers.update(name.stream, name.durable, config));
    }
  }
}

/** It is there with another ack wait or limit; servers before 2.10 just change it. */
const consumerExists = 10148;
const isOtherwiseConfigured = (error: unknown) => error instanceof JetStreamApiError && error.code === consumerExists;
