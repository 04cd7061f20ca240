/**
 * Publishing: many events on their way at once, each answered by the server once it is stored.
 *
 * The client library's own `publish` makes a timer and two error objects for each event, which costs four times what
 * the rest does. Here one subscription hears all answers, two numbers in the reply subject say whose it is, and one
 * timer watches over a whole call.
 */
import { createInbox, InvalidArgumentError, type Msg, type NatsConnection } from "@nats-io/nats-core";
import type { Envelope } from "@todoke/kernel/bus";
import { dead, done, type Outcome, release } from "@todoke/kernel/worker";
import { Flight, notKnown } from "./flight.ts";
import { type Link, messageOf } from "./link.ts";
import { headersOf } from "./message.ts";
import type { Address, Names } from "./names.ts";
import type { Streams } from "./streams.ts";

export interface PublisherOptions {
  readonly link: Link;
  readonly names: Names;
  readonly streams: Streams;
  readonly inboxPrefix: string | undefined;
  readonly timeoutMs: number;
}

/** Servers from 2.11 on take ten thousand unanswered messages and refuse more. Past a few thousand nothing is gained. */
const inFlightMax = 4_000;
/** The server's word for a message larger than its stream takes. */
const exceedsStreamMax = 10054;
/** The server's words for a stream, an account or a disk that is full, or a stream that is sealed: nothing is wrong with the event. */
const noRoom = new Set([10002, 10023, 10028, 10047, 10077, 10109]);
const noRoomMs = 1_000;

export class Publisher implements AsyncDisposable {
  readonly #options: PublisherOptions;
  readonly #flights = new Map<number, Flight>();
  readonly #inbox: string;
  #listeningOn: NatsConnection | undefined;
  #flightsStarted = 0;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#inbox = `${createInbox(options.inboxPrefix)}.`;
    options.link.onDown(() => {
      for (const flight of this.#flights.values()) flight.giveUp("the connection broke before the answer came");
    });
  }

  async publish(events: readonly Envelope[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let from = 0; from < events.length; from += inFlightMax) {
      const some = events.slice(from, from + inFlightMax);
      const answers = this.#publishSome(some).catch((error: unknown) => {
        // The server could not be asked at all; unless it was, about the first of them.
        if (from === 0) throw error;
        return some.map(() => notKnown(messageOf(error)));
      });
      outcomes.push(...(await answers));
    }
    return outcomes;
  }

  /** Waits for the answers that are still to come, which is no longer than any publish waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#flights.values()].map((flight) => flight.landed));
  }

  async #publishSome(events: readonly Envelope[]): Promise<readonly Outcome[]> {
    const { link, timeoutMs } = this.#options;
    const flight = new Flight(await this.#addressesOf(events));
    const connection = link.connection();
    this.#listen(connection);
    this.#flightsStarted += 1;
    const number = this.#flightsStarted;
    this.#flights.set(number, flight);
    const timer = setTimeout(() => flight.giveUp(`no answer within ${timeoutMs} ms`), timeoutMs);
    for (const [n, event] of events.entries()) {
      const refusal = send({ connection, event, address: flight.addresses[n], reply: `${this.#inbox}${number}.${n}` });
      if (refusal) flight.settle(n, refusal);
    }
    const outcomes = await flight.landed;
    clearTimeout(timer);
    this.#flights.delete(number);
    return outcomes;
  }

  /** Makes sure on the way that there is a stream at each address. */
  async #addressesOf(events: readonly Envelope[]): Promise<(Address | undefined)[]> {
    const { link, names, streams } = this.#options;
    link.connection();
    const addresses = events.map((event) => names.addressOf(event.subject));
    for (const address of addresses) {
      if (address && !streams.isThere(address.stream)) await streams.ensure(address.stream);
    }
    return addresses;
  }

  #listen(connection: NatsConnection): void {
    if (this.#listeningOn === connection) return;
    this.#listeningOn = connection;
    connection.subscribe(`${this.#inbox}*.*`, { callback: (_, message) => this.#hear(message) });
  }

  #hear(message: Msg): void {
    const { subject } = message;
    const dot = subject.indexOf(".", this.#inbox.length);
    const flight = this.#flights.get(Number(subject.slice(this.#inbox.length, dot)));
    const n = Number(subject.slice(dot + 1));
    const address = flight?.addresses[n];
    // No flight: it comes too late, and the caller has been told that it is not known.
    if (flight && address) flight.settle(n, this.#outcomeOf(message, address));
  }

  /** Stored means: by the right stream, with a sequence number. A duplicate has the number of its first copy. */
  #outcomeOf(message: Msg, address: Address): Outcome {
    if (message.data.length === 0) {
      this.#options.streams.forget(address.stream);
      return notKnown(`no stream takes ${address.subject}; it will be made again`);
    }
    const { error, stream, seq = 0 } = parse(message);
    if (error) {
      const why = `${error.description} (${error.err_code})`;
      if (error.err_code === exceedsStreamMax) return dead(why);
      return noRoom.has(error.err_code) ? release(why, noRoomMs) : notKnown(why);
    }
    return stream === address.stream && seq > 0 ? done : notKnown(`${stream} answered for ${address.stream}`);
  }
}

interface Sending {
  readonly connection: NatsConnection;
  readonly event: Envelope;
  readonly address: Address | undefined;
  readonly reply: string;
}

/** Undefined when it is on its way. */
function send({ connection, event, address, reply }: Sending): Outcome | undefined {
  if (!address) return dead(`the subject "${event.subject}" must be a service in lower case, a dot and a topic`);
  try {
    connection.publish(address.subject, event.payload, { headers: headersOf(event), reply });
    return undefined;
  } catch (error) {
    // The client refuses what the server would close the connection for: too large, or a header it cannot carry.
    const isHopeless = error instanceof InvalidArgumentError || error instanceof URIError;
    return isHopeless ? dead(messageOf(error)) : notKnown(messageOf(error));
  }
}

interface PubAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: { readonly err_code: number; readonly description: string };
}

function parse(message: Msg): PubAck {
  try {
    return JSON.parse(message.string()) as PubAck;
  } catch {
    return {};
  }
}
