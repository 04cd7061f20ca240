/**
 * Keeps a consumer on its queue: one channel at a time, and another when that one breaks, for ever.
 *
 * What a broken channel had delivered, the broker takes back and delivers again; `lost` says which channel that was.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Channel } from "rabbitmq-client";
import { type Arrival, Tally } from "./arrival.ts";
import { asUnavailable, closeChannel, type Link, type Log } from "./link.ts";
import { within } from "./within.ts";

export interface IntakeOptions {
  readonly link: Link;
  readonly queue: string;
  /** Makes the queue; called before each channel is used. */
  readonly prepare: () => Promise<void>;
  /** The most messages that may be under way and unanswered. */
  readonly prefetchCount: number;
  readonly arrive: (arrival: Arrival) => void;
  readonly lost: (channel: Channel) => void;
  readonly log: Log;
}

/** One life of the consumer on one channel. */
interface Session {
  readonly channel: Channel;
  readonly consumerTag: string;
  /** Resolves when no more will come on it. */
  readonly ended: Promise<unknown>;
}

const answerMs = 5_000;
/** Between tries to consume again. While there is no connection a try costs nothing, and soon after it is there one succeeds. */
const resumeMs = { first: 50, cap: 500 };

export class Intake implements AsyncDisposable {
  readonly #options: IntakeOptions;
  readonly #stopping = new AbortController();
  readonly #stopped = Promise.withResolvers<void>();
  #session: Session | undefined;
  #keeping: Promise<void> = Promise.resolve();

  private constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Resolves once messages can come. Rejects with BusUnavailable when they cannot. */
  static async open(options: IntakeOptions): Promise<Intake> {
    const intake = new Intake(options);
    intake.#session = await intake.#begin();
    intake.#keeping = intake.#keep();
    return intake;
  }

  /** No more messages come. Those that came can still be answered. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    this.#stopped.resolve();
    if (!this.#session) return;
    const { channel, consumerTag } = this.#session;
    await within(answerMs, "cancel", channel.basicCancel(consumerTag)).catch(() => {});
  }

  /** Whatever was not answered by now goes to others. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#keeping;
    if (this.#session) await closeChannel(this.#session.channel);
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures++) {
      if (this.#session) {
        await Promise.race([this.#session.ended, this.#stopped.promise]);
        if (signal.aborted) return;
        this.#end(this.#session);
        failures = 0;
      }
      const delayMs = Math.min(resumeMs.cap, resumeMs.first * 2 ** failures) * (0.5 + Math.random());
      await pause(delayMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#beginAgain(failures);
    }
    // It was stopped while it began again.
    if (this.#session) await closeChannel(this.#session.channel);
  }

  #end({ channel }: Session): void {
    this.#options.log(`${this.#options.queue}: RabbitMQ stopped delivering; will subscribe again`);
    this.#session = undefined;
    void closeChannel(channel);
    this.#options.lost(channel);
  }

  async #beginAgain(failures: number): Promise<void> {
    try {
      this.#session = await this.#begin();
    } catch (error) {
      if (failures === 0) this.#options.log(`${this.#options.queue}: cannot subscribe; will try again`, error);
    }
  }

  async #begin(): Promise<Session> {
    const { link, prepare } = this.#options;
    await prepare();
    const channel = await link.acquire();
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
    channel.once("close", end);
    channel.once("basic.cancel", end);
    try {
      const consumerTag = await within(answerMs, "begin to deliver", this.#consume(channel));
      return { channel, consumerTag, ended };
    } catch (error) {
      void closeChannel(channel);
      throw asUnavailable(error);
    }
  }

  async #consume(channel: Channel): Promise<string> {
    const { queue, prefetchCount, arrive } = this.#options;
    await channel.basicQos({ prefetchCount });
    const tally = new Tally(channel);
    const { consumerTag } = await channel.basicConsume({ queue }, (message) => arrive(tally.arrive(message)));
    return consumerTag;
  }
}
