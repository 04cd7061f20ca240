/**
 * One process of a consumer: receives messages, passes them to the handler in batches, and acks them.
 *
 * A message is in flight from its arrival to its ack. Every third of the ack wait it reports to the server that messages in
 * flight are in progress. Closing stops the flow, releases messages that no handler has seen, and waits for running handlers.
 */
import type { Msg } from "@nats-io/nats-core";
import { type Delivery, HandlerPool, type Subscription as SubscriptionRequest } from "@todoke/kernel/bus";
import type { Outcome } from "@todoke/kernel/worker";
import { ack, ackFor, handlerErrorDelayMs, inProgress, nak, parseReply } from "./acks.ts";
import type { Connection, Log } from "./connection.ts";
import { toDelivery } from "./message.ts";
import type { DurableName, Names } from "./names.ts";
import { Puller } from "./puller.ts";
import type { Streams } from "./streams.ts";

export interface SubscriptionOptions {
  readonly connection: Connection;
  readonly names: Names;
  readonly streams: Streams;
  readonly log: Log;
  readonly ackWaitMs: number;
  readonly ackPendingMax: number;
  readonly inboxPrefix: string | undefined;
}

interface InFlightMessage {
  readonly delivery: Delivery;
  /** The subject of the ack. */
  readonly reply: string;
  readonly source: Source;
}

/** A stream of the subscription, and its messages in flight. */
interface Source {
  readonly puller: Puller;
  messages: number;
  bytes: number;
}

const defaults = { batchMax: 200, concurrency: 1 };

export class Subscription implements AsyncDisposable {
  readonly #options: SubscriptionOptions;
  readonly #request: SubscriptionRequest & typeof defaults;
  readonly #sources: Source[];
  readonly #inFlight = new Set<InFlightMessage>();
  readonly #handlers: HandlerPool<InFlightMessage>;
  readonly #stopping = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  #closed: Promise<void> | undefined;

  private constructor(request: SubscriptionRequest, options: SubscriptionOptions) {
    this.#options = options;
    this.#request = { ...defaults, ...request };
    const { consumer } = request;
    this.#handlers = new HandlerPool({
      ...this.#request,
      toDelivery: ({ delivery }) => delivery,
      settle: (batch, outcomes) => this.#settle(batch, outcomes),
      retryMs: handlerErrorDelayMs,
      onHandlerError: (error, { length }) =>
        options.log(`the handler of ${consumer} threw; its batch of ${length} is redelivered`, error),
      stopping: this.#stopping.signal,
    });
    const durables = options.names.durables(request.consumer, request.subjects);
    this.#sources = durables.map((name) => this.#createSource(name));
    this.#heartbeat = setInterval(() => this.#sendInProgress(), options.ackWaitMs / 3);
  }

  static async open(request: SubscriptionRequest, options: SubscriptionOptions): Promise<Subscription> {
    const subscription = new Subscription(request, options);
    try {
      await Promise.all(subscription.#sources.map(({ puller }) => puller.start()));
      return subscription;
    } catch (error) {
      await subscription[Symbol.asyncDispose]();
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#sources.map(({ puller }) => puller.stop()));
    for (const message of this.#handlers.takeWaiting()) this.#ack(message, nak(0));
    await this.#handlers.idle();
    clearInterval(this.#heartbeat);
    await this.#options.connection.flush();
  }

  #createSource(name: DurableName): Source {
    const source: Source = {
      messages: 0,
      bytes: 0,
      puller: new Puller({
        ...this.#options,
        name,
        // One batch more than the handlers have, so that no handler waits for the network.
        inFlightMax: this.#request.batchMax * (this.#request.concurrency + 1),
        inFlight: () => source,
        onMessage: (message) => this.#receive(message, { name, source }),
      }),
    };
    return source;
  }

  #receive(message: Msg, { name, source }: { name: DurableName; source: Source }): void {
    const { names, connection } = this.#options;
    const subject = names.toEventSubject(message.subject);
    const reply = message.reply ?? "";
    if (!name.subjects.has(subject)) {
      // The filter is wider than the requested subjects.
      connection.send(reply, ack);
      return;
    }
    const { deliveries, sequence } = parseReply(reply);
    const delivery = toDelivery(message, { subject, deliveries, position: `${name.stream}/${sequence}` });
    const received = { delivery, reply, source };
    source.messages += 1;
    source.bytes += message.data.length;
    this.#inFlight.add(received);
    this.#handlers.push(received);
  }

  async #settle(batch: readonly InFlightMessage[], outcomes: readonly Outcome[]): Promise<void> {
    for (const [index, message] of batch.entries()) this.#ack(message, ackFor(outcomes[index] as Outcome));
    for (const { puller } of this.#sources) puller.pull();
  }

  #ack(message: InFlightMessage, answer: Uint8Array): void {
    this.#inFlight.delete(message);
    message.source.messages -= 1;
    message.source.bytes -= message.delivery.payload.length;
    this.#options.connection.send(message.reply, answer);
  }

  #sendInProgress(): void {
    for (const { reply } of this.#inFlight) this.#options.connection.send(reply, inProgress);
  }
}
