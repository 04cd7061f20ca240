/**
 * Retries wait in retry queues, one per consumer and delay step, and return to the consumer's queue when their time is up. All
 * messages of a retry queue wait equally long, so none blocks another. (In one queue for all delays a message of an hour would
 * block those of a second behind it, because RabbitMQ expires only the first.)
 *
 * A message is stored in its retry queue before it is acked: a crash in between doubles it and loses nothing. It returns no
 * sooner than requested and at the next step at the latest. A delay longer than the longest step takes several.
 */
import type { AsyncMessage } from "rabbitmq-client";
import type { Connection, Log } from "./connection.ts";
import { type OutgoingMessage, toRequeued } from "./message.ts";
import type { Publisher } from "./publisher.ts";
import type { Topology } from "./topology.ts";

/**
 * Each step is at most 2.5 times the previous one, so no delay grows by more. The kernel's backoff is between half a second
 * and 90 seconds.
 */
export const defaultStepsMs: readonly number[] = [
  100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 90_000, 200_000, 500_000, 1_200_000, 3_000_000,
];

export interface Step {
  /** Zero: directly back to the consumer's queue. */
  readonly delayMs: number;
  /** The delay that is left after this step. */
  readonly leftMs: number;
}

/** Sorts the steps. Throws for steps that RabbitMQ does not support. */
export function sortSteps(stepsMs: readonly number[]): readonly number[] {
  const isStep = (ms: number) => Number.isInteger(ms) && ms > 0 && ms < 2 ** 32;
  if (stepsMs.length > 0 && stepsMs.every(isStep)) return [...stepsMs].sort((one, other) => one - other);
  throw new Error(`delayStepsMs must be one or more whole numbers of milliseconds, not [${stepsMs}]`);
}

/** `stepsMs` are sorted. */
export function chooseStep(delayMs: number, stepsMs: readonly number[]): Step {
  if (delayMs <= 0) return { delayMs: 0, leftMs: 0 };
  const longest = stepsMs.at(-1) ?? 0;
  const stepMs = stepsMs.find((step) => step >= delayMs) ?? longest;
  return { delayMs: stepMs, leftMs: Math.max(0, Math.ceil(delayMs - stepMs)) };
}

export interface DelayedMessage {
  readonly message: AsyncMessage;
  readonly delayMs: number;
}

export interface RetryQueuesOptions {
  /** The publishers' connection: a broker that is short of memory blocks connections that publish, and must not block consumers. */
  readonly connection: Connection;
  readonly publisher: Publisher;
  readonly topology: Topology;
  readonly stepsMs: readonly number[];
  readonly log: Log;
}

export class RetryQueues {
  readonly #options: RetryQueuesOptions;
  readonly #declared = new Map<string, Promise<string>>();

  constructor(options: RetryQueuesOptions) {
    this.#options = options;
  }

  /** Returns, in input order, whether each message is stored and may be acked. */
  async delay(consumer: string, items: readonly DelayedMessage[]): Promise<readonly boolean[]> {
    if (items.length === 0) return [];
    try {
      const messages = await Promise.all(items.map((item) => this.#address(consumer, item)));
      const outcomes = await this.#options.publisher.publish(messages);
      for (const [index, outcome] of outcomes.entries()) {
        // The queue may be gone: declare it again before its next use.
        if (outcome.kind !== "done") this.#declared.delete(messages[index]?.properties.routingKey ?? "");
      }
      return outcomes.map(({ kind }) => kind === "done");
    } catch (error) {
      this.#options.log(`${consumer}: retries cannot be delayed now`, error);
      return items.map(() => false);
    }
  }

  async #address(consumer: string, { message, delayMs }: DelayedMessage): Promise<OutgoingMessage> {
    const step = chooseStep(delayMs, this.#options.stepsMs);
    return toRequeued(message, { queue: await this.#declareQueue(consumer, step.delayMs), waitMs: step.leftMs });
  }

  async #declareQueue(consumer: string, delayMs: number): Promise<string> {
    const { topology, connection } = this.#options;
    if (delayMs === 0) return topology.queueName(consumer);
    const name = topology.retryQueueName(consumer, delayMs);
    const declaring =
      this.#declared.get(name) ??
      topology.declareRetryQueue(connection, consumer, delayMs).catch((error) => {
        this.#declared.delete(name);
        throw error;
      });
    this.#declared.set(name, declaring);
    return declaring;
  }
}
