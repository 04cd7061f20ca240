/**
 * One durable consumer of the memory bus: whose turn is it, and who gets it.
 *
 * Each aggregate is a line of events. The first of a line can be handed out; until it is done or dead the line waits,
 * so events of an aggregate never pass each other, and lines never wait for one another.
 */
import { type Outcome, retry } from "../worker/outcome.ts";
import type { Delivery, Envelope, Subscription } from "./index.ts";

/** One event in its line. */
interface Place {
  readonly event: Envelope;
  redelivered: boolean;
}

/** A process' share in a consumer. */
export interface Member extends AsyncDisposable {
  /** Leaves without a word: what it held is handed to others. */
  vanish(): void;
}

/** How long a handler that threw is left alone. */
const rethinkMs = 100;
/** The longest that a Node timer can wait: past it, it fires at once. */
const timerMaxMs = 2 ** 31 - 1;

export class MemoryConsumer {
  readonly #lines = new Map<string, Place[]>();
  /** Aggregates whose first event can be handed out now, in the order in which they became so. */
  readonly #ready = new Set<string>();
  readonly #subjects = new Set<string>();
  readonly #seats = new Set<Seat>();

  /** Asks for more subjects, with what was published on them before. */
  want(subjects: readonly string[], past: readonly Envelope[]): void {
    const added = new Set(subjects.filter((subject) => !this.#subjects.has(subject)));
    for (const subject of added) this.#subjects.add(subject);
    for (const event of past) if (added.has(event.subject)) this.#enqueue(event);
  }

  offer(event: Envelope): void {
    if (this.#subjects.has(event.subject)) this.#enqueue(event);
  }

  join(subscription: Subscription): Member {
    const seat = new Seat(subscription, this);
    this.#seats.add(seat);
    this.#wake();
    return {
      vanish: () => {
        this.#seats.delete(seat);
        for (const place of seat.vanish()) this.#comeBack(place);
      },
      [Symbol.asyncDispose]: async () => {
        this.#seats.delete(seat);
        await seat.finish();
      },
    };
  }

  /** At most one event of each aggregate: the next of the line depends on what becomes of this one. */
  take(batchMax: number): Place[] {
    const places: Place[] = [];
    for (const key of this.#ready) {
      if (places.length >= batchMax) break;
      this.#ready.delete(key);
      const first = this.#lines.get(key)?.[0];
      if (first) places.push(first);
    }
    return places;
  }

  settle(place: Place, outcome: Outcome): void {
    if (outcome.kind === "done" || outcome.kind === "dead") {
      this.#leave(place);
      return;
    }
    // A timer may fire up to a millisecond early; a retry may not.
    const ms = Math.min(timerMaxMs, Math.max(0, Math.ceil(outcome.inMs)) + 1);
    setTimeout(() => this.#comeBack(place), ms).unref();
  }

  #enqueue(event: Envelope): void {
    const line = this.#lines.get(event.aggregateKey);
    const place = { event, redelivered: false };
    if (line) line.push(place);
    else this.#lines.set(event.aggregateKey, [place]);
    if (!line) this.#getReady(event.aggregateKey);
  }

  #leave({ event: { aggregateKey } }: Place): void {
    const line = this.#lines.get(aggregateKey);
    line?.shift();
    if (line?.length) this.#getReady(aggregateKey);
    else this.#lines.delete(aggregateKey);
  }

  #comeBack(place: Place): void {
    place.redelivered = true;
    this.#getReady(place.event.aggregateKey);
  }

  #getReady(key: string): void {
    this.#ready.add(key);
    this.#wake();
  }

  /** Later, so that all that is published in one call can be handed over together. */
  #wake(): void {
    queueMicrotask(() => {
      for (const seat of this.#seats) seat.fill();
    });
  }
}

/** Where a process sits at the table: `concurrency` batches at a time. */
class Seat {
  readonly #subscription: Subscription;
  readonly #consumer: MemoryConsumer;
  readonly #running = new Set<Promise<void>>();
  readonly #held = new Set<Place>();
  readonly #stopping = new AbortController();

  constructor(subscription: Subscription, consumer: MemoryConsumer) {
    this.#subscription = subscription;
    this.#consumer = consumer;
  }

  fill(): void {
    const { batchMax = 100, concurrency = 1 } = this.#subscription;
    while (!this.#stopping.signal.aborted && this.#running.size < concurrency) {
      const places = this.#consumer.take(batchMax);
      if (places.length === 0) return;
      const run = this.#run(places).finally(() => {
        this.#running.delete(run);
        this.fill();
      });
      this.#running.add(run);
    }
  }

  async #run(places: readonly Place[]): Promise<void> {
    for (const place of places) this.#held.add(place);
    const outcomes = await this.#answers(places.map(delivered));
    for (const [n, place] of places.entries()) {
      // What vanished with the process belongs to another by now.
      const isOurs = this.#held.delete(place);
      if (isOurs) this.#consumer.settle(place, outcomes[n] ?? retry(rethinkMs, "it was not answered"));
    }
  }

  async #answers(deliveries: readonly Delivery[]): Promise<readonly Outcome[]> {
    try {
      return await this.#subscription.handle(deliveries, this.#stopping.signal);
    } catch (error) {
      return deliveries.map(() => retry(rethinkMs, `the handler threw: ${error}`));
    }
  }

  vanish(): Place[] {
    this.#stopping.abort();
    const held = [...this.#held];
    this.#held.clear();
    return held;
  }

  async finish(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }
}

/** Each consumer gets bytes of its own: one that scribbles on them harms nobody. */
function delivered({ event, redelivered }: Place): Delivery {
  return { ...event, headers: { ...event.headers }, payload: Uint8Array.from(event.payload), redelivered };
}
