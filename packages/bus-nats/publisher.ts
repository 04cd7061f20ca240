/**
 * Publishes many events concurrently; the server acks each one once it is stored.
 *
 * The client's own `publish` creates a timer and two error objects per event, which costs four times as much as everything else.
 * Here one subscription receives all acks, two numbers in the reply subject identify the event, and one timer bounds a whole
 * call.
 */
import { createInbox, InvalidArgumentError, type Msg, type NatsConnection } from "@nats-io/nats-core";
import type { Envelope } from "@todoke/kernel/bus";
import { dead, done, type Outcome, release } from "@todoke/kernel/worker";
import { type Connection, messageOf } from "./connection.ts";
import { toHeaders } from "./message.ts";
import type { Address, Names } from "./names.ts";
import { PublishBatch, unconfirmed } from "./publish-batch.ts";
import type { Streams } from "./streams.ts";

export interface PublisherOptions {
  readonly connection: Connection;
  readonly names: Names;
  readonly streams: Streams;
  readonly inboxPrefix: string | undefined;
  readonly timeoutMs: number;
}

/** Servers from 2.11 refuse more than 10,000 messages without an ack. More than a few thousand are no faster. */
const inFlightMax = 4_000;
/** The server's error code for a message larger than the stream allows. */
const exceedsStreamMax = 10054;
/** Error codes for a full stream, account or disk, or a sealed stream: the event itself is fine. */
const noRoom = new Set([10002, 10023, 10028, 10047, 10077, 10109]);
const noRoomDelayMs = 1_000;

export class Publisher implements AsyncDisposable {
  readonly #options: PublisherOptions;
  readonly #batches = new Map<number, PublishBatch>();
  readonly #inbox: string;
  #subscribedOn: NatsConnection | undefined;
  #lastBatch = 0;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#inbox = `${createInbox(options.inboxPrefix)}.`;
    options.connection.onDown(() => {
      for (const batch of this.#batches.values()) batch.setRestUnconfirmed("the connection was lost before the ack");
    });
  }

  async publish(events: readonly Envelope[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let from = 0; from < events.length; from += inFlightMax) {
      const some = events.slice(from, from + inFlightMax);
      const someOutcomes = this.#publishSome(some).catch((error: unknown) => {
        // Nothing was sent, unless an earlier part of the call was.
        if (from === 0) throw error;
        return some.map(() => unconfirmed(messageOf(error)));
      });
      outcomes.push(...(await someOutcomes));
    }
    return outcomes;
  }

  /** Waits for the acks of running calls, at most for the publish timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#batches.values()].map((batch) => batch.completed));
  }

  async #publishSome(events: readonly Envelope[]): Promise<readonly Outcome[]> {
    const { connection, timeoutMs } = this.#options;
    const batch = new PublishBatch(await this.#resolveAddresses(events));
    const nats = connection.nats();
    this.#subscribe(nats);
    this.#lastBatch += 1;
    const id = this.#lastBatch;
    this.#batches.set(id, batch);
    const timer = setTimeout(() => batch.setRestUnconfirmed(`no answer within ${timeoutMs} ms`), timeoutMs);
    for (const [index, event] of events.entries()) {
      const address = batch.addresses[index];
      const failure = send({ nats, event, address, reply: `${this.#inbox}${id}.${index}` });
      if (failure) batch.set(index, failure);
    }
    const outcomes = await batch.completed;
    clearTimeout(timer);
    this.#batches.delete(id);
    return outcomes;
  }

  /** Creates missing streams. */
  async #resolveAddresses(events: readonly Envelope[]): Promise<(Address | undefined)[]> {
    const { connection, names, streams } = this.#options;
    connection.nats();
    const addresses = events.map((event) => names.resolve(event.subject));
    for (const address of addresses) {
      if (address && !streams.exists(address.stream)) await streams.ensure(address.stream);
    }
    return addresses;
  }

  #subscribe(nats: NatsConnection): void {
    if (this.#subscribedOn === nats) return;
    this.#subscribedOn = nats;
    nats.subscribe(`${this.#inbox}*.*`, { callback: (_, message) => this.#onAck(message) });
  }

  #onAck(message: Msg): void {
    const { subject } = message;
    const dot = subject.indexOf(".", this.#inbox.length);
    const batch = this.#batches.get(Number(subject.slice(this.#inbox.length, dot)));
    const index = Number(subject.slice(dot + 1));
    const address = batch?.addresses[index];
    // Without a batch the ack is too late: the caller has "unconfirmed" already.
    if (batch && address) batch.set(index, this.#toOutcome(message, address));
  }

  /** An event is stored if the right stream returns a sequence number. A duplicate has the number of its first copy. */
  #toOutcome(message: Msg, address: Address): Outcome {
    if (message.data.length === 0) {
      this.#options.streams.forget(address.stream);
      return unconfirmed(`no stream takes ${address.subject}; it will be created again`);
    }
    const { error, stream, seq = 0 } = parseAck(message);
    if (error) {
      const reason = `${error.description} (${error.err_code})`;
      if (error.err_code === exceedsStreamMax) return dead(reason);
      return noRoom.has(error.err_code) ? release(reason, noRoomDelayMs) : unconfirmed(reason);
    }
    return stream === address.stream && seq > 0 ? done : unconfirmed(`${stream} answered for ${address.stream}`);
  }
}

interface SendOptions {
  readonly nats: NatsConnection;
  readonly event: Envelope;
  readonly address: Address | undefined;
  readonly reply: string;
}

/** Returns undefined if the event was sent. */
function send({ nats, event, address, reply }: SendOptions): Outcome | undefined {
  if (!address) return dead(`the subject "${event.subject}" must be a service in lower case, a dot and a topic`);
  try {
    nats.publish(address.subject, event.payload, { headers: toHeaders(event), reply });
    return undefined;
  } catch (error) {
    // The client rejects what the server would close the connection for: an event that is too large, an invalid header.
    const isPermanent = error instanceof InvalidArgumentError || error instanceof URIError;
    return isPermanent ? dead(messageOf(error)) : unconfirmed(messageOf(error));
  }
}

interface PubAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: { readonly err_code: number; readonly description: string };
}

function parseAck(message: Msg): PubAck {
  try {
    return JSON.parse(message.string()) as PubAck;
  } catch {
    return {};
  }
}
