/**
 * Names and declares the exchange and the queues.
 *
 * A namespace has one durable topic exchange; the subject is the routing key. Each consumer has one durable quorum queue,
 * bound to its subjects, and retry queues (retry-queues.ts):
 *
 *   todoke                             the exchange of the namespace "todoke"
 *   todoke.notification                the queue of the consumer "notification"
 *   todoke.notification.retry.1000ms   retries of "notification" that wait a second
 *
 * `queues` gives the queue of a consumer another name; its retry queues then begin with that name.
 *
 * All are declared again on every new connection, so a broker that lost its data gets its queues back.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, isRefusal, type Log, messageOf, toUnavailable } from "./connection.ts";
import type { Server } from "./server.ts";

export interface Consumer {
  readonly name: string;
  readonly subjects: readonly string[];
}

/** Without dots, which separate the parts of a queue name. */
const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

export interface TopologyOptions {
  readonly namespace: string;
  /** Names of the queues of some consumers. */
  readonly queues?: Readonly<Record<string, string>>;
  /**
   * The delay before the first use of a new queue, and of its bindings. RabbitMQ confirms a declaration up to two seconds before
   * it is on disk: Erlang's disk_log writes its cache two seconds after the first entry. A single broker that is killed in
   * between loses the queue with all that it has confirmed, or the binding and so all later events.
   */
  readonly newQueueDelayMs: number;
  readonly log: Log;
}

export class Topology {
  readonly exchange: string;
  readonly #options: TopologyOptions;
  readonly #warnings = new Map<string, string>();

  constructor(options: TopologyOptions) {
    this.exchange = checkName("namespace", options.namespace);
    for (const queue of Object.values(options.queues ?? {})) checkName("queue", queue);
    this.#options = options;
  }

  /** One sentence per queue that exists with other settings, with what to do. */
  get warnings(): string[] {
    return [...this.#warnings.values()];
  }

  queueName(consumer: string): string {
    return this.#options.queues?.[consumer] ?? `${this.exchange}.${checkName("consumer", consumer)}`;
  }

  retryQueueName(consumer: string, delayMs: number): string {
    return `${this.queueName(consumer)}.retry.${delayMs}ms`;
  }

  async declareExchange(connection: Connection): Promise<void> {
    await connection.request((channel) =>
      channel.exchangeDeclare({ exchange: this.exchange, type: "topic", durable: true }),
    );
  }

  /** Once this resolves, events of the subjects are stored for the consumer. Rejects with BusUnavailable. */
  async declareConsumer(connection: Connection, consumer: Consumer): Promise<void> {
    try {
      await this.#declareConsumer(connection, consumer);
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  async #declareConsumer(connection: Connection, { name, subjects }: Consumer): Promise<void> {
    const queue = this.queueName(name);
    await this.declareExchange(connection);
    let isNew = false;
    try {
      isNew = await this.#declareQueue(connection, queue, queueArguments(await connection.server()));
      this.#warnings.delete(queue);
    } catch (error) {
      if (!isRefusal(error, "PRECONDITION_FAILED")) throw error;
      this.#warnOfOtherSettings(queue, error.message);
    }
    await connection.request(async (channel) => {
      for (const subject of subjects) await channel.queueBind({ exchange: this.exchange, queue, routingKey: subject });
    });
    if (isNew) await sleep(this.#options.newQueueDelayMs);
  }

  /** Rejects if the queue exists with other settings: it might lose the messages that wait in it. */
  async declareRetryQueue(connection: Connection, consumer: string, delayMs: number): Promise<string> {
    const queue = this.retryQueueName(consumer, delayMs);
    try {
      await this.#declareQueue(connection, queue, retryQueueArguments(this.queueName(consumer), delayMs));
      this.#warnings.delete(queue);
      return queue;
    } catch (error) {
      const warning = `The queue ${queue} is not used for retries, because it might lose them; delete it (${messageOf(error)}).`;
      if (isRefusal(error, "PRECONDITION_FAILED")) this.#warnings.set(queue, warning);
      throw toUnavailable(error);
    }
  }

  /** Returns whether the queue is new. */
  async #declareQueue(connection: Connection, queue: string, args: Record<string, unknown>): Promise<boolean> {
    const isNew = (await readQueue(connection, queue)) === undefined;
    await connection.request((channel) => channel.queueDeclare({ queue, durable: true, arguments: args }));
    if (isNew) await sleep(this.#options.newQueueDelayMs);
    return isNew;
  }

  /** The queue was declared with other settings, or by an older broker. It is used, because its events must not be lost. */
  #warnOfOtherSettings(queue: string, difference: string): void {
    if (/current is '?stream/.test(difference))
      throw new Error(`${queue} is a stream; a consumer needs a quorum queue`);
    const warning =
      `The queue ${queue} has other settings than Todoke gives it, and may drop events because of them (${difference}). ` +
      "Stop its publishers, let its consumers empty it, delete it, and start them again: it is then created anew.";
    if (!this.#warnings.has(queue)) this.#options.log(warning);
    this.#warnings.set(queue, warning);
  }
}

/** Messages that are ready in the queue, and its consumers; undefined if it does not exist. */
export async function readQueue(connection: Connection, queue: string) {
  try {
    return await connection.request((channel) => channel.queueDeclare({ queue, passive: true }));
  } catch (error) {
    if (isRefusal(error, "NOT_FOUND")) return undefined;
    throw error;
  }
}

/**
 * RabbitMQ 4 drops a message after 20 requeues unless the limit is -1. RabbitMQ 3 has no default limit and takes -1 for one: it
 * drops at the first requeue. So the version decides.
 */
export function queueArguments({ version }: Server): Record<string, unknown> {
  const hasLimitByDefault = Number.parseInt(version, 10) >= 4;
  return {
    "x-queue-type": "quorum",
    // If a policy limits the length of the queue, refuse new messages instead of dropping old ones.
    "x-overflow": "reject-publish",
    ...(hasLimitByDefault && { "x-delivery-limit": -1 }),
  };
}

/**
 * An expired message goes to the consumer's queue and leaves this one only once it is confirmed there. By default RabbitMQ would
 * drop it if that failed. "reject-publish" is a precondition.
 */
function retryQueueArguments(queue: string, delayMs: number): Record<string, unknown> {
  return {
    "x-queue-type": "quorum",
    "x-message-ttl": delayMs,
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": queue,
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
  };
}

function checkName(kind: string, name: string): string {
  if (namePattern.test(name)) return name;
  throw new Error(`the ${kind} "${name}" must be 1 to 64 letters, digits, "-" and "_"`);
}
