/**
 * The event bus in memory: for tests, and for single-process programs that may lose events.
 *
 * It has every guarantee of the port except durability: its events are lost with the process. Events of one aggregate are
 * handled one after another, through retries and across the "processes" that share a broker.
 */
import { dead, done, type Outcome, retry } from "../worker/outcome.ts";
import { BusUnavailable, type Envelope, type EventBus } from "./index.ts";
import { MemoryConsumer, type Subscriber } from "./memory-consumer.ts";

export interface MemoryBus extends EventBus {
  /** All stored events, oldest first. */
  readonly published: readonly Envelope[];
  /** Ends this bus as kill -9 would: its unsettled events are redelivered to others and its outcomes are ignored. */
  crash(): void;
}

/** Stores events. Buses on one broker behave like processes on one server. */
export class MemoryBroker {
  readonly events: Envelope[] = [];
  readonly #ids = new Set<string>();
  readonly #consumers = new Map<string, MemoryConsumer>();
  /** The default of NATS: an event that fits here fits there. */
  readonly payloadBytesMax = 1_048_576;
  /** A bound, so that a forgotten bus fails with a clear message instead of filling the heap. */
  readonly eventsMax = 100_000;

  store(event: Envelope): Outcome {
    if (event.payload.byteLength > this.payloadBytesMax) {
      return dead(`the payload has ${event.payload.byteLength} bytes; the maximum is ${this.payloadBytesMax}`);
    }
    if (this.#ids.has(event.eventId)) return done;
    if (this.events.length >= this.eventsMax) return retry(1_000, `the memory bus is full (${this.eventsMax} events)`);
    const stored = copy(event);
    this.#ids.add(stored.eventId);
    this.events.push(stored);
    for (const consumer of this.#consumers.values()) consumer.offer(stored);
    return done;
  }

  consumer(name: string, subjects: readonly string[]): MemoryConsumer {
    const consumer = this.#consumers.get(name) ?? new MemoryConsumer();
    this.#consumers.set(name, consumer);
    consumer.addSubjects(subjects, this.events);
    return consumer;
  }
}

/** Opens a bus in memory. */
export function memoryBus(broker: MemoryBroker = new MemoryBroker()): MemoryBus {
  const subscribers = new Set<Subscriber>();
  let ended: string | undefined;
  const assertOpen = () => {
    if (ended) throw new BusUnavailable(`this bus ${ended}`);
  };
  return {
    published: broker.events,
    async publish(events) {
      assertOpen();
      return events.map((event) => broker.store(event));
    },
    async subscribe(subscription) {
      assertOpen();
      const subscriber = broker.consumer(subscription.consumer, subscription.subjects).join(subscription);
      subscribers.add(subscriber);
      return {
        async [Symbol.asyncDispose]() {
          await subscriber[Symbol.asyncDispose]();
          subscribers.delete(subscriber);
        },
      };
    },
    async check() {
      assertOpen();
      return {
        engine: "memory",
        warnings: ["Events are lost with this process: use a broker where they must not be."],
      };
    },
    crash() {
      ended = "has crashed";
      for (const subscriber of subscribers) subscriber.crash();
    },
    async [Symbol.asyncDispose]() {
      ended ??= "is closed";
      await Promise.all([...subscribers].map((subscriber) => subscriber[Symbol.asyncDispose]()));
    },
  };
}

/** Copied, so that later changes by the publisher have no effect. */
function copy(event: Envelope): Envelope {
  return { ...event, headers: { ...event.headers }, payload: Uint8Array.from(event.payload) };
}
