/**
 * Publishing: many messages on their way at once on one channel, each confirmed by the broker once it is stored.
 *
 * A message that no queue takes is confirmed too; the broker sends it back first, because it was sent as mandatory. The
 * client library tells of the confirmation before it tells of the return, though the broker said them the other way
 * round: so nothing is believed before the event loop has turned once.
 */
import { setImmediate as turn } from "node:timers/promises";
import { BusUnavailable } from "@todoke/kernel/bus";
import { dead, done, type Outcome, release, retry } from "@todoke/kernel/worker";
import { AMQPError, type Channel, type ReturnedMessage } from "rabbitmq-client";
import { asUnavailable, closeChannel, type Link, type Log, messageOf } from "./link.ts";
import type { Outgoing } from "./message.ts";
import { within } from "./within.ts";

export interface PublisherOptions {
  readonly link: Link;
  /** Makes what messages are sent to; called before a channel is used for the first time. */
  readonly prepare: () => Promise<void>;
  readonly timeoutMs: number;
  readonly payloadBytesMax: number;
  /** How soon a caller should try again what was not confirmed. */
  readonly retryMs: number;
  readonly log: Log;
}

/** A channel that confirms, and what came back on it. */
interface Line {
  readonly channel: Channel;
  /** How many of each message came back and were not accounted for yet, see `labelOf`. */
  readonly returned: Map<string, number>;
  /** Calls of `publish` that still wait for confirmations. */
  calls: number;
}

export class Publisher implements AsyncDisposable {
  readonly #options: PublisherOptions;
  readonly #running = new Set<Promise<unknown>>();
  #payloadBytesMax: number;
  #line: Line | undefined;
  #opening: Promise<Line> | undefined;
  #isClosed = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#payloadBytesMax = options.payloadBytesMax;
  }

  /** Answers each message in its place. Rejects with BusUnavailable when none was sent. */
  async publish(messages: readonly Outgoing[]): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new BusUnavailable("this bus is closed");
    if (messages.length === 0) return [];
    const publishing = this.#openLine().then((line) => this.#publishOn(line, messages));
    this.#running.add(publishing);
    try {
      return await publishing;
    } finally {
      this.#running.delete(publishing);
    }
  }

  /** Waits for what is on its way. Every call ends by its own timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    if (this.#line) await closeChannel(this.#line.channel);
  }

  async #publishOn(line: Line, messages: readonly Outgoing[]): Promise<readonly Outcome[]> {
    const { timeoutMs, retryMs } = this.#options;
    const unconfirmed = retry(retryMs, `RabbitMQ did not confirm it within ${timeoutMs} ms`);
    const outcomes: Outcome[] = messages.map(() => unconfirmed);
    line.calls += 1;
    const sent = messages.map(async (message, place) => {
      outcomes[place] = this.#whyDead(message) ?? (await this.#send(line, message));
    });
    try {
      await within(timeoutMs, "confirm", Promise.all(sent));
    } catch {
      // Its confirmations may never come: later calls get a new channel, and this one ends with the calls that use it.
      this.#retire(line);
    }
    await turn();
    const answers = messages.map((message, place) => this.#judge(line, message, outcomes[place] ?? unconfirmed));
    line.calls -= 1;
    if (line !== this.#line && line.calls === 0) void closeChannel(line.channel);
    return answers;
  }

  async #send(line: Line, { properties, body }: Outgoing): Promise<Outcome> {
    const { retryMs } = this.#options;
    try {
      await line.channel.basicPublish(properties, body);
      return done;
    } catch (error) {
      this.#learnLimit(error);
      const why = `RabbitMQ did not confirm it: ${messageOf(error)}`;
      return isNack(error) ? release(why, retryMs) : retry(retryMs, why);
    }
  }

  /** The last word on one message, once returns and lessons are in. */
  #judge(line: Line, message: Outgoing, outcome: Outcome): Outcome {
    const wasReturned = takeReturned(line, labelOf(message.properties));
    if (outcome.kind === "retry") return this.#whyDead(message) ?? outcome;
    if (outcome.kind !== "done" || !wasReturned) return outcome;
    const { exchange, routingKey } = message.properties;
    const why =
      exchange === ""
        ? `the queue ${routingKey} is gone`
        : `no queue is bound for ${routingKey}: start a consumer of it once, or name it in the option "consumers"`;
    return release(why, this.#options.retryMs); // Nothing is wrong with the event.
  }

  #whyDead({ body, impossible }: Outgoing): Outcome | undefined {
    if (impossible !== undefined) return dead(impossible);
    const most = this.#payloadBytesMax;
    return body.length > most ? dead(`its payload has ${body.length} bytes, and ${most} is the most`) : undefined;
  }

  /**
   * A broker with a lower limit than ours closes the channel on what is too large, and everything else that was on its
   * way with it. It names its limit then, so that happens once and not at every try.
   */
  #learnLimit(error: unknown): void {
    const [, limit] = /is larger than (?:configured )?max size (\d+)/.exec(messageOf(error)) ?? [];
    if (limit === undefined || Number(limit) >= this.#payloadBytesMax) return;
    this.#payloadBytesMax = Number(limit);
    this.#options.log(`RabbitMQ takes payloads of ${limit} bytes at the most (its max_message_size)`);
  }

  async #openLine(): Promise<Line> {
    if (this.#options.link.whyBlocked === undefined && this.#line?.channel.active) return this.#line;
    this.#opening ??= this.#makeLine().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #makeLine(): Promise<Line> {
    const { link, prepare, timeoutMs } = this.#options;
    let channel: Channel | undefined;
    try {
      await prepare();
      channel = await link.acquire();
      await within(timeoutMs, "turn on confirmations", channel.confirmSelect());
    } catch (error) {
      if (channel) void closeChannel(channel);
      throw asUnavailable(error);
    }
    const line: Line = { channel, returned: new Map(), calls: 0 };
    channel.on("basic.return", (message) => noteReturned(line, message));
    this.#line = line;
    return line;
  }

  #retire(line: Line): void {
    if (this.#line === line) this.#line = undefined;
  }
}

/** Tells messages on one channel apart: the same event may be on its way to the exchange and to a delay queue. */
const labelOf = (message: Pick<ReturnedMessage, "exchange" | "routingKey" | "messageId">): string =>
  `${message.exchange}\n${message.routingKey}\n${message.messageId}`;

function noteReturned({ returned }: Line, message: ReturnedMessage): void {
  const label = labelOf(message);
  returned.set(label, (returned.get(label) ?? 0) + 1);
}

function takeReturned({ returned }: Line, label: string): boolean {
  const times = returned.get(label) ?? 0;
  if (times > 1) returned.set(label, times - 1);
  else returned.delete(label);
  return times > 0;
}

/** The broker heard it and would not have it: a full queue. */
const isNack = (error: unknown) => error instanceof AMQPError && error.code === "NACK";
