/**
 * Retries wait in queues of their own, one for each consumer and step, and go back to the consumer's queue when the
 * step's time is up. All messages of such a queue wait equally long, so none stands in another's way. (In one queue for
 * all delays a message of an hour would hold up those of a second behind it: RabbitMQ looks at the first only.)
 *
 * A message is stored in its delay queue before it is acknowledged where it came from: a crash between the two doubles
 * it and loses nothing. It comes back no sooner than asked, and at the next step at the latest; a wait longer than the
 * longest step is made of several.
 */
import type { AsyncMessage } from "rabbitmq-client";
import type { Link, Log } from "./link.ts";
import { again, type Outgoing } from "./message.ts";
import type { Publisher } from "./publisher.ts";
import type { Topology } from "./topology.ts";

/**
 * Each is at most two and a half times the one before, so that is the most by which a wait grows. The kernel's backoff
 * goes from half a second to ninety.
 */
export const defaultStepsMs: readonly number[] = [
  100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 90_000, 200_000, 500_000, 1_200_000, 3_000_000,
];

export interface Step {
  /** Zero for no wait at all: straight back to the consumer's queue. */
  readonly delayMs: number;
  /** What is left to wait after it. */
  readonly leftMs: number;
}

/** In their order. Throws on steps that RabbitMQ could not keep, or that would never get through a wait. */
export function risingSteps(stepsMs: readonly number[]): readonly number[] {
  const isStep = (ms: number) => Number.isInteger(ms) && ms > 0 && ms < 2 ** 32;
  if (stepsMs.length > 0 && stepsMs.every(isStep)) return [...stepsMs].sort((one, other) => one - other);
  throw new Error(`delayStepsMs must be one or more whole numbers of milliseconds, not [${stepsMs}]`);
}

/** `stepsMs` rise. */
export function stepFor(waitMs: number, stepsMs: readonly number[]): Step {
  if (waitMs <= 0) return { delayMs: 0, leftMs: 0 };
  const longest = stepsMs.at(-1) ?? 0;
  const delayMs = stepsMs.find((step) => step >= waitMs) ?? longest;
  return { delayMs, leftMs: Math.max(0, Math.ceil(waitMs - delayMs)) };
}

export interface PutOff {
  readonly message: AsyncMessage;
  readonly waitMs: number;
}

export interface DelaysOptions {
  /** The publishers' connection: a broker short of memory stops those who publish, and consumers must not be among them. */
  readonly link: Link;
  readonly publisher: Publisher;
  readonly topology: Topology;
  readonly stepsMs: readonly number[];
  readonly log: Log;
}

export class Delays {
  readonly #options: DelaysOptions;
  readonly #declared = new Map<string, Promise<string>>();

  constructor(options: DelaysOptions) {
    this.#options = options;
  }

  /** Answers for each, in its place, whether it is safely stored and may be acknowledged where it came from. */
  async putOff(consumer: string, items: readonly PutOff[]): Promise<readonly boolean[]> {
    if (items.length === 0) return [];
    try {
      const messages = await Promise.all(items.map((item) => this.#addressed(consumer, item)));
      const outcomes = await this.#options.publisher.publish(messages);
      for (const [place, outcome] of outcomes.entries()) {
        // Perhaps the queue is gone: it is made again before it is next used.
        if (outcome.kind !== "done") this.#declared.delete(messages[place]?.properties.routingKey ?? "");
      }
      return outcomes.map(({ kind }) => kind === "done");
    } catch (error) {
      this.#options.log(`${consumer}: retries cannot be put off now`, error);
      return items.map(() => false);
    }
  }

  async #addressed(consumer: string, { message, waitMs }: PutOff): Promise<Outgoing> {
    const { delayMs, leftMs } = stepFor(waitMs, this.#options.stepsMs);
    return again(message, { queue: await this.#queueFor(consumer, delayMs), waitMs: leftMs });
  }

  async #queueFor(consumer: string, delayMs: number): Promise<string> {
    const { topology, link } = this.#options;
    if (delayMs === 0) return topology.queueOf(consumer);
    const name = topology.delayQueueOf(consumer, delayMs);
    const declaring =
      this.#declared.get(name) ??
      topology.declareDelayQueue(link, consumer, delayMs).catch((error) => {
        this.#declared.delete(name);
        throw error;
      });
    this.#declared.set(name, declaring);
    return declaring;
  }
}
