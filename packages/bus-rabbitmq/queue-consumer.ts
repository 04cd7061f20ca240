/** Consumes from a queue on one channel at a time, and opens another channel when that one breaks. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Channel } from "rabbitmq-client";
import { AckTracker, type ReceivedMessage } from "./ack-tracker.ts";
import { type Connection, closeChannel, type Log, requestTimeoutMs, toUnavailable } from "./connection.ts";
import { withTimeout } from "./with-timeout.ts";

export interface QueueConsumerOptions {
  readonly connection: Connection;
  readonly queue: string;
  /** Declares the queue; called before each channel is used. */
  readonly prepare: () => Promise<void>;
  /** The most messages without an ack. */
  readonly prefetchCount: number;
  readonly onMessage: (received: ReceivedMessage) => void;
  /** Called when a channel breaks. The broker redelivers its unacked messages. */
  readonly onChannelLost: (channel: Channel) => void;
  readonly log: Log;
}

/** A consumer on one channel. */
interface Session {
  readonly channel: Channel;
  readonly consumerTag: string;
  /** Resolves when no more messages can come. */
  readonly ended: Promise<unknown>;
}

/** The delay before consuming again. An attempt without a connection costs nothing. */
const resumeDelayMs = { first: 50, cap: 500 };

export class QueueConsumer implements AsyncDisposable {
  readonly #options: QueueConsumerOptions;
  readonly #stopping = new AbortController();
  readonly #stopped = Promise.withResolvers<void>();
  #session: Session | undefined;
  #loop: Promise<void> = Promise.resolve();

  private constructor(options: QueueConsumerOptions) {
    this.#options = options;
  }

  /** Resolves once messages can come, else rejects with BusUnavailable. */
  static async open(options: QueueConsumerOptions): Promise<QueueConsumer> {
    const consumer = new QueueConsumer(options);
    consumer.#session = await consumer.#startSession();
    consumer.#loop = consumer.#keepConsuming();
    return consumer;
  }

  /** Ends the flow of messages. Received messages can still be acked. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    this.#stopped.resolve();
    if (!this.#session) return;
    const { channel, consumerTag } = this.#session;
    await withTimeout(requestTimeoutMs, "cancel", channel.basicCancel(consumerTag)).catch(() => {});
  }

  /** The broker redelivers unacked messages to other processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#loop;
    if (this.#session) await closeChannel(this.#session.channel);
  }

  async #keepConsuming(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures++) {
      if (this.#session) {
        await Promise.race([this.#session.ended, this.#stopped.promise]);
        if (signal.aborted) return;
        this.#endSession(this.#session);
        failures = 0;
      }
      const delayMs = Math.min(resumeDelayMs.cap, resumeDelayMs.first * 2 ** failures) * (0.5 + Math.random());
      await sleep(delayMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#tryToResume(failures);
    }
    // It was stopped while a session started.
    if (this.#session) await closeChannel(this.#session.channel);
  }

  #endSession({ channel }: Session): void {
    this.#options.log(`${this.#options.queue}: RabbitMQ stopped delivering; subscribing again`);
    this.#session = undefined;
    void closeChannel(channel);
    this.#options.onChannelLost(channel);
  }

  async #tryToResume(failures: number): Promise<void> {
    try {
      this.#session = await this.#startSession();
    } catch (error) {
      if (failures === 0) this.#options.log(`${this.#options.queue}: cannot subscribe; retrying`, error);
    }
  }

  async #startSession(): Promise<Session> {
    const { connection, prepare } = this.#options;
    await prepare();
    const channel = await connection.acquireChannel();
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
    channel.once("close", end);
    channel.once("basic.cancel", end);
    try {
      const consumerTag = await withTimeout(requestTimeoutMs, "start to deliver", this.#consume(channel));
      return { channel, consumerTag, ended };
    } catch (error) {
      void closeChannel(channel);
      throw toUnavailable(error);
    }
  }

  async #consume(channel: Channel): Promise<string> {
    const { queue, prefetchCount, onMessage } = this.#options;
    await channel.basicQos({ prefetchCount });
    const tracker = new AckTracker(channel);
    const { consumerTag } = await channel.basicConsume({ queue }, (message) => onMessage(tracker.track(message)));
    return consumerTag;
  }
}
