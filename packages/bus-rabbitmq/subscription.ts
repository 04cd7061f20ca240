/**
 * Handling: messages are handed over in batches as they come, and acknowledged after they were answered.
 *
 * A retry is put off in a queue of its own (delays.ts). Whatever fails here is logged, and the message comes again;
 * nothing is thrown.
 */
import type { Subscription as Wish } from "@todoke/kernel/bus";
import { type Outcome, retry } from "@todoke/kernel/worker";
import type { Channel } from "rabbitmq-client";
import { type Arrival, acknowledge, giveBack } from "./arrival.ts";
import type { Delays } from "./delays.ts";
import { Intake } from "./intake.ts";
import type { Link, Log } from "./link.ts";
import { deliveryOf, returnsOf, waitOf } from "./message.ts";
import type { Topology } from "./topology.ts";

export interface SubscriptionOptions {
  /** The consumers' connection. */
  readonly link: Link;
  readonly topology: Topology;
  readonly delays: Delays;
  readonly prefetchMax: number;
  /** When a batch whose handler threw comes again. */
  readonly retryMs: number;
  readonly log: Log;
}

interface PutOff {
  readonly arrival: Arrival;
  readonly waitMs: number;
}

const defaultBatchMax = 100;
/** A retry that cannot be put off is kept here and given back after its delay, or after this if that is longer. */
const holdMsMax = 5_000;
/**
 * A message that came back to its queue this often is sent to it afresh, which begins its count again. The limit past
 * which RabbitMQ 4 would drop it is twice as high, where one is in force: in a queue that RabbitMQ 3 made, or by a policy.
 */
const returnsMax = 10;

export class Subscription implements AsyncDisposable {
  readonly #wish: Wish & { readonly batchMax: number; readonly concurrency: number };
  readonly #options: SubscriptionOptions;
  readonly #stopping = new AbortController();
  /** Delivered and not handed over yet. */
  #waiting: Arrival[] = [];
  /** Answered "retry", and kept until they are given back. */
  readonly #held = new Map<Arrival, NodeJS.Timeout>();
  /** Everything that must end before this does. */
  readonly #underWay = new Set<Promise<void>>();
  /** Counted over all channels: a batch that lost its channel still keeps its handler busy. */
  #batches = 0;
  #isPumpDue = false;
  #intake: Intake | undefined;
  #closed: Promise<void> | undefined;

  private constructor(wish: Wish, options: SubscriptionOptions) {
    this.#wish = { batchMax: defaultBatchMax, concurrency: 1, ...wish };
    this.#options = options;
    const { batchMax, concurrency } = this.#wish;
    if (!(batchMax >= 1 && concurrency >= 1)) throw new Error("batchMax and concurrency must be 1 or more");
  }

  /** Resolves once deliveries can come. Rejects with BusUnavailable when they cannot. */
  static async open(wish: Wish, options: SubscriptionOptions): Promise<Subscription> {
    const subscription = new Subscription(wish, options);
    await subscription.#open();
    return subscription;
  }

  async #open(): Promise<void> {
    const { link, topology, prefetchMax, log } = this.#options;
    const { consumer: name, subjects, batchMax, concurrency } = this.#wish;
    this.#intake = await Intake.open({
      link,
      queue: topology.queueOf(name),
      prepare: () => topology.declareConsumer(link, { name, subjects }),
      // One batch in each hand and the next on its way.
      prefetchCount: Math.min(prefetchMax, batchMax * concurrency * 2),
      arrive: (arrival) => this.#arrive(arrival),
      lost: (channel) => this.#lose(channel),
      log,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    // First, or the broker would send to us again what we give back.
    await this.#intake?.stop();
    for (const arrival of this.#waiting.splice(0)) giveBack(arrival);
    for (const arrival of this.#held.keys()) this.#letGo(arrival);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    await this.#intake?.[Symbol.asyncDispose]();
  }

  #arrive(arrival: Arrival): void {
    const waitMs = waitOf(arrival.message);
    if (this.#stopping.signal.aborted) giveBack(arrival);
    else if (waitMs > 0) this.#track(this.#putOff([{ arrival, waitMs }]));
    else if (returnsOf(arrival.message) >= returnsMax) this.#track(this.#renew(arrival));
    else this.#queueUp(arrival);
  }

  #lose(channel: Channel): void {
    this.#waiting = this.#waiting.filter((arrival) => arrival.tally.channel !== channel);
  }

  #queueUp(arrival: Arrival): void {
    this.#waiting.push(arrival);
    this.#pumpSoon();
  }

  /** In the next turn of the event loop, so that what came in one piece is handed over together. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { batchMax, concurrency } = this.#wish;
    while (this.#batches < concurrency && this.#waiting.length > 0 && !this.#stopping.signal.aborted) {
      const batch = this.#waiting.splice(0, batchMax);
      this.#batches += 1;
      const worked = this.#work(batch).finally(() => {
        this.#batches -= 1;
        this.#pumpSoon();
      });
      this.#track(worked);
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error) => this.#options.log(`${this.#wish.consumer}: messages were left unanswered`, error))
      .finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  async #work(batch: readonly Arrival[]): Promise<void> {
    const outcomes = await this.#ask(batch);
    const finished: Arrival[] = [];
    const late: PutOff[] = [];
    for (const [place, arrival] of batch.entries()) {
      const outcome = outcomes[place] ?? retry(this.#options.retryMs, "the handler gave no answer for it");
      if (outcome.kind === "done" || outcome.kind === "dead") finished.push(arrival);
      else if (outcome.inMs <= 0) giveBack(arrival);
      else late.push({ arrival, waitMs: outcome.inMs });
    }
    acknowledge(finished);
    await this.#putOff(late);
  }

  async #ask(batch: readonly Arrival[]): Promise<readonly Outcome[]> {
    try {
      const deliveries = batch.map(({ message }) => deliveryOf(message));
      return await this.#wish.handle(deliveries, this.#stopping.signal);
    } catch (error) {
      this.#options.log(`${this.#wish.consumer}: the handler of a batch of ${batch.length} threw`, error);
      return batch.map(() => retry(this.#options.retryMs, "its handler threw"));
    }
  }

  async #putOff(items: readonly PutOff[]): Promise<void> {
    const messages = items.map(({ arrival, waitMs }) => ({ message: arrival.message, waitMs }));
    const stored = await this.#options.delays.putOff(this.#wish.consumer, messages);
    acknowledge(items.filter((_, place) => stored[place]).map(({ arrival }) => arrival));
    for (const { arrival, waitMs } of items.filter((_, place) => !stored[place])) {
      this.#hold(arrival, Math.min(waitMs, holdMsMax));
    }
  }

  async #renew(arrival: Arrival): Promise<void> {
    const [isStored] = await this.#options.delays.putOff(this.#wish.consumer, [
      { message: arrival.message, waitMs: 0 },
    ]);
    if (isStored) acknowledge([arrival]);
    else if (this.#stopping.signal.aborted) giveBack(arrival);
    else this.#queueUp(arrival);
  }

  #hold(arrival: Arrival, ms: number): void {
    if (this.#stopping.signal.aborted) giveBack(arrival);
    else {
      const timer = setTimeout(() => this.#letGo(arrival), ms);
      this.#held.set(arrival, timer);
    }
  }

  #letGo(arrival: Arrival): void {
    clearTimeout(this.#held.get(arrival));
    this.#held.delete(arrival);
    giveBack(arrival);
  }
}
