/**
 * The event bus in memory: for tests, and for programs of one process that can afford to lose events with it.
 *
 * It keeps every promise of the port but the one about storage: what it holds dies with the process. Events of one
 * aggregate are handled one after another, through retries and across the "processes" that share a broker.
 */
import { dead, done, type Outcome, retry } from "../worker/outcome.ts";
import { BusUnavailable, type Envelope, type EventBus } from "./index.ts";
import { type Member, MemoryConsumer } from "./memory-consumer.ts";

export interface MemoryBus extends EventBus {
  /** All that was stored, oldest first. */
  readonly published: readonly Envelope[];
  /** Ends this bus object as kill -9 would: what it held goes to others, and nothing it says is heard any more. */
  crash(): void;
}

/** Where events are kept. Buses on one broker are to each other as processes on one server. */
export class MemoryBroker {
  readonly events: Envelope[] = [];
  readonly #ids = new Set<string>();
  readonly #consumers = new Map<string, MemoryConsumer>();
  /** As NATS has it by default: an event that fits here fits there. */
  readonly payloadBytesMax = 1_048_576;
  /** A bound, so that a forgotten bus fills up with a clear word instead of filling the heap. */
  readonly eventsMax = 100_000;

  store(event: Envelope): Outcome {
    if (event.payload.byteLength > this.payloadBytesMax) {
      return dead(`the payload has ${event.payload.byteLength} bytes; ${this.payloadBytesMax} is the most`);
    }
    if (this.#ids.has(event.eventId)) return done;
    if (this.events.length >= this.eventsMax) return retry(1_000, `the memory bus is full (${this.eventsMax} events)`);
    const kept = copied(event);
    this.#ids.add(kept.eventId);
    this.events.push(kept);
    for (const consumer of this.#consumers.values()) consumer.offer(kept);
    return done;
  }

  consumer(name: string, subjects: readonly string[]): MemoryConsumer {
    const consumer = this.#consumers.get(name) ?? new MemoryConsumer();
    this.#consumers.set(name, consumer);
    consumer.want(subjects, this.events);
    return consumer;
  }
}

export function memoryBus(broker: MemoryBroker = new MemoryBroker()): MemoryBus {
  const members = new Set<Member>();
  let gone: string | undefined;
  const assertHere = () => {
    if (gone) throw new BusUnavailable(`this bus ${gone}`);
  };
  return {
    published: broker.events,
    async publish(events) {
      assertHere();
      return events.map((event) => broker.store(event));
    },
    async subscribe(subscription) {
      assertHere();
      const member = broker.consumer(subscription.consumer, subscription.subjects).join(subscription);
      members.add(member);
      return {
        async [Symbol.asyncDispose]() {
          await member[Symbol.asyncDispose]();
          members.delete(member);
        },
      };
    },
    async check() {
      assertHere();
      return { engine: "memory", warnings: ["Events die with this process: use a broker where they must not."] };
    },
    crash() {
      gone = "has crashed";
      for (const member of members) member.vanish();
    },
    async [Symbol.asyncDispose]() {
      gone ??= "is closed";
      await Promise.all([...members].map((member) => member[Symbol.asyncDispose]()));
    },
  };
}

/** What a caller changes after publishing changes nothing here. */
function copied(event: Envelope): Envelope {
  return { ...event, headers: { ...event.headers }, payload: Uint8Array.from(event.payload) };
}
