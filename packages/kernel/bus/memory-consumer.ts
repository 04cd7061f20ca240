/**
 * A durable consumer of the memory bus.
 *
 * Each aggregate is a queue of events. Its first event can be delivered; the rest wait until that is done or dead. So events
 * of an aggregate never overtake each other, and aggregates never wait for one another.
 */
import type { Outcome } from "../worker/outcome.ts";
import { HandlerPool } from "./handler-pool.ts";
import type { Delivery, Envelope, Subscription } from "./index.ts";

interface QueuedEvent {
  readonly event: Envelope;
  redelivered: boolean;
}

/** The subscription of one process. */
export interface Subscriber extends AsyncDisposable {
  /** Ends it as a crash would: its unsettled events are redelivered to others. */
  crash(): void;
}

/** The retry delay after a handler throws. */
const handlerErrorDelayMs = 100;
/** The longest delay of a Node timer; a longer one fires at once. */
const timerMaxMs = 2 ** 31 - 1;

export class MemoryConsumer {
  readonly #queues = new Map<string, QueuedEvent[]>();
  /** Aggregates whose first event can be delivered, in the order in which they became ready. */
  readonly #ready = new Set<string>();
  readonly #subjects = new Set<string>();
  readonly #processes = new Set<Process>();

  /** Adds subjects, with the events published on them so far. */
  addSubjects(subjects: readonly string[], past: readonly Envelope[]): void {
    const added = new Set(subjects.filter((subject) => !this.#subjects.has(subject)));
    for (const subject of added) this.#subjects.add(subject);
    for (const event of past) if (added.has(event.subject)) this.#enqueue(event);
  }

  offer(event: Envelope): void {
    if (this.#subjects.has(event.subject)) this.#enqueue(event);
  }

  join(subscription: Subscription): Subscriber {
    const process = new Process(subscription, this);
    this.#processes.add(process);
    this.#deliver();
    return {
      crash: () => {
        this.#processes.delete(process);
        for (const queued of process.crash()) this.#redeliver(queued);
      },
      [Symbol.asyncDispose]: async () => {
        this.#processes.delete(process);
        await process.finish();
      },
    };
  }

  /** At most one event of each aggregate: the next one depends on its outcome. */
  take(batchMax: number): QueuedEvent[] {
    const taken: QueuedEvent[] = [];
    for (const key of this.#ready) {
      if (taken.length >= batchMax) break;
      this.#ready.delete(key);
      const first = this.#queues.get(key)?.[0];
      if (first) taken.push(first);
    }
    return taken;
  }

  settle(queued: QueuedEvent, outcome: Outcome): void {
    if (outcome.kind === "done" || outcome.kind === "dead") {
      this.#dequeue(queued);
      return;
    }
    // One ms more, because a timer may fire one too early.
    const ms = Math.min(timerMaxMs, Math.max(0, Math.ceil(outcome.delayMs)) + 1);
    setTimeout(() => this.#redeliver(queued), ms).unref();
  }

  #enqueue(event: Envelope): void {
    const queue = this.#queues.get(event.aggregateKey);
    const queued = { event, redelivered: false };
    if (queue) queue.push(queued);
    else this.#queues.set(event.aggregateKey, [queued]);
    if (!queue) this.#markReady(event.aggregateKey);
  }

  #dequeue({ event: { aggregateKey } }: QueuedEvent): void {
    const queue = this.#queues.get(aggregateKey);
    queue?.shift();
    if (queue?.length) this.#markReady(aggregateKey);
    else this.#queues.delete(aggregateKey);
  }

  #redeliver(queued: QueuedEvent): void {
    queued.redelivered = true;
    this.#markReady(queued.event.aggregateKey);
  }

  #markReady(key: string): void {
    this.#ready.add(key);
    this.#deliver();
  }

  /** In a microtask, so that events published in one call are delivered together. */
  #deliver(): void {
    queueMicrotask(() => {
      for (const process of this.#processes) process.fill();
    });
  }
}

/** One subscribed process. */
class Process {
  readonly #unsettled = new Set<QueuedEvent>();
  readonly #stopping = new AbortController();
  readonly #handlers: HandlerPool<QueuedEvent>;

  constructor({ handle, batchMax = 100, concurrency = 1 }: Subscription, consumer: MemoryConsumer) {
    this.#handlers = new HandlerPool({
      handle,
      batchMax,
      concurrency,
      take: (max) => {
        const batch = consumer.take(max);
        for (const queued of batch) this.#unsettled.add(queued);
        return batch;
      },
      toDelivery,
      settle: (batch, outcomes) => {
        // After a crash, another process has the event.
        for (const [index, queued] of batch.entries())
          if (this.#unsettled.delete(queued)) consumer.settle(queued, outcomes[index] as Outcome);
      },
      retryMs: handlerErrorDelayMs,
      stopping: this.#stopping.signal,
    });
  }

  fill(): void {
    this.#handlers.fill();
  }

  crash(): QueuedEvent[] {
    this.#stopping.abort();
    const unsettled = [...this.#unsettled];
    this.#unsettled.clear();
    return unsettled;
  }

  async finish(): Promise<void> {
    this.#stopping.abort();
    await this.#handlers.idle();
  }
}

/** Copied, so that a consumer that changes the bytes affects no other. */
function toDelivery({ event, redelivered }: QueuedEvent): Delivery {
  return { ...event, headers: { ...event.headers }, payload: Uint8Array.from(event.payload), redelivered };
}
