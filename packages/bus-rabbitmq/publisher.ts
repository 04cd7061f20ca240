/**
 * Publishes many messages concurrently on one channel; the broker confirms each one once it is stored.
 *
 * A message that no queue takes is confirmed too, but the broker returns it first, because it is published as mandatory. The
 * client library reports the confirm before the return, so no confirm counts until the event loop has turned once.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { BusUnavailable } from "@todoke/kernel/bus";
import { dead, done, type Outcome, release, retry } from "@todoke/kernel/worker";
import { AMQPError, type Channel, type ReturnedMessage } from "rabbitmq-client";
import { type Connection, closeChannel, type Log, messageOf, toUnavailable } from "./connection.ts";
import type { OutgoingMessage } from "./message.ts";
import { withTimeout } from "./with-timeout.ts";

export interface PublisherOptions {
  readonly connection: Connection;
  /** Declares exchange and queues; called before a channel is used for the first time. */
  readonly prepare: () => Promise<void>;
  readonly timeoutMs: number;
  readonly payloadBytesMax: number;
  /** The retry delay of messages that were not confirmed. */
  readonly retryMs: number;
  readonly log: Log;
}

/** A channel in confirm mode and the messages returned on it. */
interface ConfirmChannel {
  readonly channel: Channel;
  /** The number of unprocessed returns per message, see `messageKey`. */
  readonly returned: Map<string, number>;
  /** Calls of `publish` that wait for confirms. */
  calls: number;
}

export class Publisher implements AsyncDisposable {
  readonly #options: PublisherOptions;
  readonly #running = new Set<Promise<unknown>>();
  #payloadBytesMax: number;
  #current: ConfirmChannel | undefined;
  #opening: Promise<ConfirmChannel> | undefined;
  #isClosed = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#payloadBytesMax = options.payloadBytesMax;
  }

  /** Returns the outcomes in input order. Rejects with BusUnavailable if no message was sent. */
  async publish(messages: readonly OutgoingMessage[]): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new BusUnavailable("this bus is closed");
    if (messages.length === 0) return [];
    const publishing = this.#open().then((confirming) => this.#publishOn(confirming, messages));
    this.#running.add(publishing);
    try {
      return await publishing;
    } finally {
      this.#running.delete(publishing);
    }
  }

  /** Waits for running calls. Each ends within its timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    if (this.#current) await closeChannel(this.#current.channel);
  }

  async #publishOn(confirming: ConfirmChannel, messages: readonly OutgoingMessage[]): Promise<readonly Outcome[]> {
    const { timeoutMs, retryMs } = this.#options;
    const unconfirmed = retry(retryMs, `RabbitMQ did not confirm it within ${timeoutMs} ms`);
    const outcomes: Outcome[] = messages.map(() => unconfirmed);
    confirming.calls += 1;
    const sent = messages.map(async (message, index) => {
      outcomes[index] = this.#rejectUnsendable(message) ?? (await this.#send(confirming, message));
    });
    try {
      await withTimeout(timeoutMs, "confirm", Promise.all(sent));
    } catch {
      // Its confirms may never come: later calls get a new channel, and this one closes with the last call that uses it.
      this.#retire(confirming);
    }
    await nextTurn();
    const results = messages.map((message, index) =>
      this.#finalOutcome(confirming, message, outcomes[index] ?? unconfirmed),
    );
    confirming.calls -= 1;
    if (confirming !== this.#current && confirming.calls === 0) void closeChannel(confirming.channel);
    return results;
  }

  async #send({ channel }: ConfirmChannel, { properties, body }: OutgoingMessage): Promise<Outcome> {
    const { retryMs } = this.#options;
    try {
      await channel.basicPublish(properties, body);
      return done;
    } catch (error) {
      this.#learnLimit(error);
      const reason = `RabbitMQ did not confirm it: ${messageOf(error)}`;
      return isNack(error) ? release(reason, retryMs) : retry(retryMs, reason);
    }
  }

  /** Corrects the outcome by the returns, and by a limit of the broker that was learnt in between. */
  #finalOutcome(confirming: ConfirmChannel, message: OutgoingMessage, outcome: Outcome): Outcome {
    const wasReturned = takeReturned(confirming, messageKey(message.properties));
    if (outcome.kind === "retry") return this.#rejectUnsendable(message) ?? outcome;
    if (outcome.kind !== "done" || !wasReturned) return outcome;
    const { exchange, routingKey } = message.properties;
    const reason =
      exchange === ""
        ? `the queue ${routingKey} is gone`
        : `no queue is bound for ${routingKey}: start a consumer of it once, or name it in the option "consumers"`;
    return release(reason, this.#options.retryMs); // The event itself is fine.
  }

  #rejectUnsendable({ body, unsendable }: OutgoingMessage): Outcome | undefined {
    if (unsendable !== undefined) return dead(unsendable);
    const max = this.#payloadBytesMax;
    return body.length > max ? dead(`its payload has ${body.length} bytes; the limit is ${max}`) : undefined;
  }

  /**
   * A broker with a lower limit closes the channel when a message is too large, with all messages in flight. The error names the
   * limit, so this happens once and not at every attempt.
   */
  #learnLimit(error: unknown): void {
    const [, limit] = /is larger than (?:configured )?max size (\d+)/.exec(messageOf(error)) ?? [];
    if (limit === undefined || Number(limit) >= this.#payloadBytesMax) return;
    this.#payloadBytesMax = Number(limit);
    this.#options.log(`RabbitMQ accepts payloads of at most ${limit} bytes (its max_message_size)`);
  }

  async #open(): Promise<ConfirmChannel> {
    if (this.#options.connection.blockedReason === undefined && this.#current?.channel.active) return this.#current;
    this.#opening ??= this.#openNew().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #openNew(): Promise<ConfirmChannel> {
    const { connection, prepare, timeoutMs } = this.#options;
    let channel: Channel | undefined;
    try {
      await prepare();
      channel = await connection.acquireChannel();
      await withTimeout(timeoutMs, "enable confirms", channel.confirmSelect());
    } catch (error) {
      if (channel) void closeChannel(channel);
      throw toUnavailable(error);
    }
    const confirming: ConfirmChannel = { channel, returned: new Map(), calls: 0 };
    channel.on("basic.return", (message) => addReturned(confirming, message));
    this.#current = confirming;
    return confirming;
  }

  #retire(confirming: ConfirmChannel): void {
    if (this.#current === confirming) this.#current = undefined;
  }
}

/** Distinguishes messages on one channel: the same event may be in flight to the exchange and to a retry queue. */
const messageKey = (message: Pick<ReturnedMessage, "exchange" | "routingKey" | "messageId">): string =>
  `${message.exchange}\n${message.routingKey}\n${message.messageId}`;

function addReturned({ returned }: ConfirmChannel, message: ReturnedMessage): void {
  const key = messageKey(message);
  returned.set(key, (returned.get(key) ?? 0) + 1);
}

function takeReturned({ returned }: ConfirmChannel, key: string): boolean {
  const count = returned.get(key) ?? 0;
  if (count > 1) returned.set(key, count - 1);
  else returned.delete(key);
  return count > 0;
}

/** The broker rejected the message: a queue is full. */
const isNack = (error: unknown) => error instanceof AMQPError && error.code === "NACK";
