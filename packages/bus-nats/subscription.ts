/**
 * What one process does for a consumer: takes messages, has them handled in batches, and sends the answers.
 *
 * A message is held from the moment it arrives to the moment it is answered, and while it is held the server is told
 * every third of the ack wait that somebody is working on it. Closing stops the flow, gives back what no handler has
 * seen, and waits for those that run.
 */
import type { Msg } from "@nats-io/nats-core";
import type { Delivery, Subscription as Wish } from "@todoke/kernel/bus";
import { type Outcome, retry } from "@todoke/kernel/worker";
import { ack, answerTo, inProgress, nak, parseReply, rethinkMs } from "./answer.ts";
import { type Link, type Log, messageOf } from "./link.ts";
import { deliveryOf } from "./message.ts";
import type { DurableName, Names } from "./names.ts";
import { Puller } from "./puller.ts";
import type { Streams } from "./streams.ts";

export interface SubscriptionOptions {
  readonly link: Link;
  readonly names: Names;
  readonly streams: Streams;
  readonly log: Log;
  readonly ackWaitMs: number;
  readonly ackPendingMax: number;
  readonly inboxPrefix: string | undefined;
}

interface Held {
  readonly delivery: Delivery;
  /** Where the answer goes. */
  readonly reply: string;
  readonly source: Source;
}

/** One stream's share of a subscription: who asks for its messages, and what of them is held. */
interface Source {
  readonly puller: Puller;
  messages: number;
  bytes: number;
}

const defaults = { batchMax: 200, concurrency: 1 };

export class Subscription implements AsyncDisposable {
  readonly #options: SubscriptionOptions;
  readonly #wish: Wish & typeof defaults;
  readonly #sources: Source[];
  readonly #held = new Set<Held>();
  /** Held, but in no handler's hands yet. */
  readonly #waiting: Held[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  #closed: Promise<void> | undefined;
  #isWoken = false;

  private constructor(wish: Wish, options: SubscriptionOptions) {
    this.#options = options;
    this.#wish = { ...defaults, ...wish };
    this.#sources = options.names.durablesOf(wish.consumer, wish.subjects).map((name) => this.#sourceOf(name));
    this.#heartbeat = setInterval(() => this.#sayStillWorking(), options.ackWaitMs / 3);
  }

  static async open(wish: Wish, options: SubscriptionOptions): Promise<Subscription> {
    const subscription = new Subscription(wish, options);
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
    for (const held of this.#waiting.splice(0)) this.#answer(held, nak(0));
    await Promise.all(this.#running);
    clearInterval(this.#heartbeat);
    await this.#options.link.flush();
  }

  #sourceOf(name: DurableName): Source {
    const source: Source = {
      messages: 0,
      bytes: 0,
      puller: new Puller({
        ...this.#options,
        name,
        // One batch more than is handled, so that no handler waits for the network.
        holdMax: this.#wish.batchMax * (this.#wish.concurrency + 1),
        held: () => source,
        take: (message) => this.#take(message, { name, source }),
      }),
    };
    return source;
  }

  #take(message: Msg, { name, source }: { name: DurableName; source: Source }): void {
    const { names, link } = this.#options;
    const subject = names.subjectOf(message.subject);
    const reply = message.reply ?? "";
    if (!name.subjects.has(subject)) {
      // It came because the filter is wider than what was asked for.
      link.send(reply, ack);
      return;
    }
    const { deliveries, sequence } = parseReply(reply);
    const delivery = deliveryOf(message, { subject, deliveries, position: `${name.stream}/${sequence}` });
    const held = { delivery, reply, source };
    source.messages += 1;
    source.bytes += message.data.length;
    this.#held.add(held);
    this.#waiting.push(held);
    this.#wake();
  }

  /** Later in this turn, so that all that arrived together is handed over together. */
  #wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      this.#handOver();
    });
  }

  #handOver(): void {
    while (!this.#stopping.signal.aborted && this.#waiting.length > 0 && this.#running.size < this.#wish.concurrency) {
      const run = this.#handle(this.#waiting.splice(0, this.#wish.batchMax)).then(() => {
        this.#running.delete(run);
        this.#handOver();
      });
      this.#running.add(run);
    }
  }

  async #handle(batch: readonly Held[]): Promise<void> {
    const outcomes = await this.#outcomesOf(batch);
    for (const [n, held] of batch.entries()) this.#answer(held, answerTo(outcomes[n]));
    for (const { puller } of this.#sources) puller.ask();
  }

  async #outcomesOf(batch: readonly Held[]): Promise<readonly Outcome[]> {
    const { consumer, handle } = this.#wish;
    try {
      return await handle(
        batch.map(({ delivery }) => delivery),
        this.#stopping.signal,
      );
    } catch (error) {
      this.#options.log(`the handler of ${consumer} threw; its batch of ${batch.length} will come again`, error);
      return batch.map(() => retry(rethinkMs, messageOf(error)));
    }
  }

  #answer(held: Held, answer: Uint8Array): void {
    this.#held.delete(held);
    held.source.messages -= 1;
    held.source.bytes -= held.delivery.payload.length;
    this.#options.link.send(held.reply, answer);
  }

  #sayStillWorking(): void {
    for (const { reply } of this.#held) this.#options.link.send(reply, inProgress);
  }
}
