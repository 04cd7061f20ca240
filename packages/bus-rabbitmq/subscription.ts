/**
 * Passes messages to the handler in batches and acks them after their outcome.
 *
 * A retry waits in a retry queue (retry-queues.ts). Errors are logged and the message is redelivered; nothing is thrown.
 */
import { HandlerPool, type Subscription as SubscriptionRequest } from "@todoke/kernel/bus";
import type { Outcome } from "@todoke/kernel/worker";
import { ack, type ReceivedMessage, requeue } from "./ack-tracker.ts";
import type { Connection, Log } from "./connection.ts";
import { countRequeues, readWaitMs, toDelivery } from "./message.ts";
import { QueueConsumer } from "./queue-consumer.ts";
import type { RetryQueues } from "./retry-queues.ts";
import type { Topology } from "./topology.ts";

export interface SubscriptionOptions {
  /** The consumers' connection. */
  readonly connection: Connection;
  readonly topology: Topology;
  readonly retryQueues: RetryQueues;
  readonly prefetchMax: number;
  /** The redelivery delay after a handler threw. */
  readonly retryMs: number;
  readonly log: Log;
}

interface Retry {
  readonly received: ReceivedMessage;
  readonly delayMs: number;
}

const defaultBatchMax = 100;
/** A retry that no retry queue takes stays in memory and is requeued after its delay, but at most this long. */
const memoryDelayMsMax = 5_000;
/**
 * A message that was requeued this often is published to its queue again, which resets its count. RabbitMQ 4 drops a message at
 * twice this count if the queue has a limit: one that RabbitMQ 3 declared, or one set by a policy.
 */
const requeuesMax = 10;

export class Subscription implements AsyncDisposable {
  readonly #request: SubscriptionRequest & { readonly batchMax: number; readonly concurrency: number };
  readonly #options: SubscriptionOptions;
  readonly #stopping = new AbortController();
  readonly #handlers: HandlerPool<ReceivedMessage>;
  /** Retries that wait in memory. */
  readonly #delayed = new Map<ReceivedMessage, NodeJS.Timeout>();
  /** Close waits for these. */
  readonly #inFlight = new Set<Promise<void>>();
  #queueConsumer: QueueConsumer | undefined;
  #closed: Promise<void> | undefined;

  private constructor(request: SubscriptionRequest, options: SubscriptionOptions) {
    this.#request = { batchMax: defaultBatchMax, concurrency: 1, ...request };
    this.#options = options;
    const { batchMax, concurrency } = this.#request;
    if (!(batchMax >= 1 && concurrency >= 1)) throw new Error("batchMax and concurrency must be 1 or more");
    this.#handlers = new HandlerPool({
      ...this.#request,
      toDelivery: ({ message }) => toDelivery(message),
      settle: (batch, outcomes) => this.#track(this.#settle(batch, outcomes)),
      retryMs: options.retryMs,
      onHandlerError: (error, { length }) =>
        options.log(`${request.consumer}: the handler of a batch of ${length} threw`, error),
      stopping: this.#stopping.signal,
      defer: setImmediate,
    });
  }

  /** Resolves once messages can come, else rejects with BusUnavailable. */
  static async open(request: SubscriptionRequest, options: SubscriptionOptions): Promise<Subscription> {
    const subscription = new Subscription(request, options);
    await subscription.#open();
    return subscription;
  }

  async #open(): Promise<void> {
    const { connection, topology, prefetchMax, log } = this.#options;
    const { consumer: name, subjects, batchMax, concurrency } = this.#request;
    this.#queueConsumer = await QueueConsumer.open({
      connection,
      queue: topology.queueName(name),
      prepare: () => topology.declareConsumer(connection, { name, subjects }),
      // One batch per handler, and the next one for each.
      prefetchCount: Math.min(prefetchMax, batchMax * concurrency * 2),
      onMessage: (received) => this.#receive(received),
      onChannelLost: (channel) => this.#handlers.takeWaiting(({ tracker }) => tracker.channel === channel),
      log,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    // First, else the broker would redeliver requeued messages to this process.
    await this.#queueConsumer?.stop();
    for (const received of this.#handlers.takeWaiting()) requeue(received);
    for (const received of this.#delayed.keys()) this.#requeueDelayed(received);
    await this.#handlers.idle();
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
    await this.#queueConsumer?.[Symbol.asyncDispose]();
  }

  #receive(received: ReceivedMessage): void {
    const delayMs = readWaitMs(received.message);
    if (this.#stopping.signal.aborted) requeue(received);
    else if (delayMs > 0) this.#track(this.#delay([{ received, delayMs }]));
    else if (countRequeues(received.message) >= requeuesMax) this.#track(this.#publishAgain(received));
    else this.#handlers.push(received);
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = work
      .catch((error) => this.#options.log(`${this.#request.consumer}: messages were left without an ack`, error))
      .finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
    return tracked;
  }

  async #settle(batch: readonly ReceivedMessage[], outcomes: readonly Outcome[]): Promise<void> {
    const finished: ReceivedMessage[] = [];
    const retries: Retry[] = [];
    for (const [index, received] of batch.entries()) {
      const outcome = outcomes[index] as Outcome;
      if (outcome.kind === "done" || outcome.kind === "dead") finished.push(received);
      else if (outcome.delayMs <= 0) requeue(received);
      else retries.push({ received, delayMs: outcome.delayMs });
    }
    ack(finished);
    await this.#delay(retries);
  }

  async #delay(retries: readonly Retry[]): Promise<void> {
    const messages = retries.map(({ received, delayMs }) => ({ message: received.message, delayMs }));
    const stored = await this.#options.retryQueues.delay(this.#request.consumer, messages);
    ack(retries.filter((_, index) => stored[index]).map(({ received }) => received));
    for (const { received, delayMs } of retries.filter((_, index) => !stored[index])) {
      this.#delayInMemory(received, Math.min(delayMs, memoryDelayMsMax));
    }
  }

  async #publishAgain(received: ReceivedMessage): Promise<void> {
    const { message } = received;
    const [isStored] = await this.#options.retryQueues.delay(this.#request.consumer, [{ message, delayMs: 0 }]);
    if (isStored) ack([received]);
    else if (this.#stopping.signal.aborted) requeue(received);
    else this.#handlers.push(received);
  }

  #delayInMemory(received: ReceivedMessage, delayMs: number): void {
    if (this.#stopping.signal.aborted) requeue(received);
    else
      this.#delayed.set(
        received,
        setTimeout(() => this.#requeueDelayed(received), delayMs),
      );
  }

  #requeueDelayed(received: ReceivedMessage): void {
    clearTimeout(this.#delayed.get(received));
    this.#delayed.delete(received);
    requeue(received);
  }
}
