/**
 * What things are called on the broker, and how they are made.
 *
 * A place has one durable topic exchange, to which events go under their subject. Each consumer has one durable quorum
 * queue, bound to its subjects, and further queues in which its retries wait (delays.ts):
 *
 *   todoke                             the exchange of the place "todoke"
 *   todoke.notification                the queue of the consumer "notification"
 *   todoke.notification.retry.1000ms   what "notification" wants to see again in a second
 *
 * Everything is declared again whenever a connection is made, so a broker that lost its data gets its queues back.
 */
import { setTimeout as pause } from "node:timers/promises";
import { asUnavailable, isRefusal, type Link, type Log, messageOf } from "./link.ts";
import type { Server } from "./server.ts";

export interface Consumer {
  readonly name: string;
  readonly subjects: readonly string[];
}

/** No dots: they separate the parts of a queue's name. */
const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

export interface TopologyOptions {
  readonly place: string;
  /**
   * How long a new queue is left alone before anything is sent to it, and its bindings before they are relied on.
   * RabbitMQ answers a declaration up to a second before it is on disk; a lone broker that is killed in between forgets
   * the queue, and everything that it had confirmed in it, or the binding, and with it everything that comes later.
   */
  readonly newQueueRestMs: number;
  readonly log: Log;
}

export class Topology {
  /** The place's name is the exchange's. */
  readonly exchange: string;
  readonly #options: TopologyOptions;
  readonly #warnings = new Map<string, string>();

  constructor(options: TopologyOptions) {
    this.exchange = named("place", options.place);
    this.#options = options;
  }

  /** Queues that exist with other settings than ours, each a sentence that says what to do. */
  get warnings(): string[] {
    return [...this.#warnings.values()];
  }

  queueOf(consumer: string): string {
    return `${this.exchange}.${named("consumer", consumer)}`;
  }

  delayQueueOf(consumer: string, delayMs: number): string {
    return `${this.queueOf(consumer)}.retry.${delayMs}ms`;
  }

  async declareExchange(link: Link): Promise<void> {
    await link.ask((channel) => channel.exchangeDeclare({ exchange: this.exchange, type: "topic", durable: true }));
  }

  /** From when this resolves on, events of the subjects are kept for the consumer. Rejects with BusUnavailable. */
  async declareConsumer(link: Link, consumer: Consumer): Promise<void> {
    try {
      await this.#declareConsumer(link, consumer);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  async #declareConsumer(link: Link, { name, subjects }: Consumer): Promise<void> {
    const queue = this.queueOf(name);
    await this.declareExchange(link);
    let isNew = false;
    try {
      isNew = await this.#declareQueue(link, queue, queueArguments(await link.server()));
      this.#warnings.delete(queue);
    } catch (error) {
      if (!isRefusal(error, "PRECONDITION_FAILED")) throw error;
      this.#useAsItIs(queue, error.message);
    }
    await link.ask(async (channel) => {
      for (const subject of subjects) await channel.queueBind({ exchange: this.exchange, queue, routingKey: subject });
    });
    if (isNew) await pause(this.#options.newQueueRestMs);
  }

  /** Rejects when there is such a queue with other settings: what waits in it might not come back. */
  async declareDelayQueue(link: Link, consumer: string, delayMs: number): Promise<string> {
    const queue = this.delayQueueOf(consumer, delayMs);
    try {
      await this.#declareQueue(link, queue, delayArguments(this.queueOf(consumer), delayMs));
      this.#warnings.delete(queue);
      return queue;
    } catch (error) {
      const warning = `The queue ${queue} is not used for retries, for it might lose them; delete it (${messageOf(error)}).`;
      if (isRefusal(error, "PRECONDITION_FAILED")) this.#warnings.set(queue, warning);
      throw asUnavailable(error);
    }
  }

  /** Whether it had to be made. */
  async #declareQueue(link: Link, queue: string, args: Record<string, unknown>): Promise<boolean> {
    const isNew = !(await isThere(link, queue));
    await link.ask((channel) => channel.queueDeclare({ queue, durable: true, arguments: args }));
    if (isNew) await pause(this.#options.newQueueRestMs);
    return isNew;
  }

  /** Somebody made the queue with other settings, or an older broker did: its events are worth more than our wishes. */
  #useAsItIs(queue: string, whatDiffers: string): void {
    if (/current is '?stream/.test(whatDiffers))
      throw new Error(`${queue} is a stream; a consumer needs a quorum queue`);
    const warning =
      `The queue ${queue} has other settings than Todoke gives it, and may lose what they make it drop (${whatDiffers}). ` +
      "Stop its publishers, let its consumers empty it, delete it, and start them again: it is then made anew.";
    if (!this.#warnings.has(queue)) this.#options.log(warning);
    this.#warnings.set(queue, warning);
  }
}

async function isThere(link: Link, queue: string): Promise<boolean> {
  try {
    await link.ask((channel) => channel.queueDeclare({ queue, passive: true }));
    return true;
  } catch (error) {
    if (isRefusal(error, "NOT_FOUND")) return false;
    throw error;
  }
}

/**
 * RabbitMQ 4 drops a message that came back to its queue 20 times, unless told -1. RabbitMQ 3 has no such limit, and
 * takes -1 for one: it drops at the first return. So the version decides.
 */
export function queueArguments({ version }: Server): Record<string, unknown> {
  const hasLimitByDefault = Number.parseInt(version, 10) >= 4;
  return {
    "x-queue-type": "quorum",
    // Should a policy limit the queue's length: refuse the new rather than drop the old.
    "x-overflow": "reject-publish",
    ...(hasLimitByDefault && { "x-delivery-limit": -1 }),
  };
}

/**
 * What waits here goes to the consumer's queue when its time is up, and leaves only once it has been confirmed there:
 * RabbitMQ's own default would drop it if that failed. "reject-publish" is a condition for it.
 */
function delayArguments(queue: string, delayMs: number): Record<string, unknown> {
  return {
    "x-queue-type": "quorum",
    "x-message-ttl": delayMs,
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": queue,
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
  };
}

function named(what: string, name: string): string {
  if (namePattern.test(name)) return name;
  throw new Error(`the ${what} "${name}" must be 1 to 64 letters, digits, "-" and "_"`);
}
