/** Consumes from a queue on one channel at a time, and opens another channel when that one breaks. */
import { BusUnavailable } from "@todoke/kernel/bus";
import { type Loop, startLoop } from "@todoke/kernel/worker";
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

/** The delay before consuming again, and after each failure. An attempt without a connection costs nothing. */
const resumeDelayMs = 50;
const resumeBackoff = { baseMs: 50, capMs: 500 };

export class QueueConsumer implements AsyncDisposable {
  readonly #options: QueueConsumerOptions;
  readonly #stopped = Promise.withResolvers<void>();
  #session: Session | undefined;
  #loop: Loop | undefined;
  #ended: PromiseLike<void> | undefined;
  #hasLogged = false;

  private constructor(options: QueueConsumerOptions) {
    this.#options = options;
  }

  /** Resolves once messages can come, else rejects with BusUnavailable. */
  static async open(options: QueueConsumerOptions): Promise<QueueConsumer> {
    const consumer = new QueueConsumer(options);
    consumer.#session = await consumer.#startSession();
    consumer.#loop = startLoop((stopping, nextIn) => consumer.#consumeSession(stopping, nextIn), {
      intervalMs: 0,
      backoff: resumeBackoff,
      onError: (error) => consumer.#logFirst(error),
    });
    return consumer;
  }

  /** Ends the flow of messages. Received messages can still be acked. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#ended = this.#loop?.[Symbol.asyncDispose]();
    this.#stopped.resolve();
    if (!this.#session) return;
    const { channel, consumerTag } = this.#session;
    await withTimeout(requestTimeoutMs, "cancel", channel.basicCancel(consumerTag)).catch(() => {});
  }

  /** The broker redelivers unacked messages to other processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#ended;
    if (this.#session) await closeChannel(this.#session.channel);
  }

  /** Starts a session unless there is one, and resolves when it has ended. */
  async #consumeSession(stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    this.#session ??= await this.#startSession();
    this.#hasLogged = false;
    // It was stopped while the session started.
    if (stopping.aborted) return closeChannel(this.#session.channel);
    await Promise.race([this.#session.ended, this.#stopped.promise]);
    if (stopping.aborted) return;
    this.#endSession(this.#session);
    nextIn(resumeDelayMs);
  }

  #logFirst(error: unknown): void {
    if (!this.#hasLogged) this.#options.log(`${this.#options.queue}: cannot subscribe; retrying`, error);
    this.#hasLogged = true;
  }

  #endSession({ channel }: Session): void {
    const { queue, log } = this.#options;
    log(`${queue}: RabbitMQ stopped delivering; subscribing again`, new BusUnavailable("the channel has ended"));
    this.#session = undefined;
    void closeChannel(channel);
    this.#options.onChannelLost(channel);
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
