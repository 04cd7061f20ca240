/**
 * Passes the messages of a subscription to its handler: up to `concurrency` batches of up to `batchMax` messages at once.
 * For adapters.
 */
import { describeError } from "../worker/describe-error.ts";
import { type Outcome, retry } from "../worker/outcome.ts";
import type { Delivery, Subscription } from "./index.ts";

export interface HandlerPoolOptions<Message>
  extends Required<Pick<Subscription, "handle" | "batchMax" | "concurrency">> {
  readonly toDelivery: (message: Message) => Delivery;
  /** Acks a batch by its outcomes. The next batch begins when it resolves. */
  readonly settle: (batch: readonly Message[], outcomes: readonly Outcome[]) => void | Promise<void>;
  /** The retry delay of a message whose handler threw or returned too few outcomes. */
  readonly retryMs: number;
  readonly onHandlerError?: (error: unknown, batch: readonly Message[]) => void;
  /** When it is aborted no further batch begins; running handlers see it. */
  readonly stopping: AbortSignal;
  /** Delays a batch, so that messages that are pushed together are handled together. */
  readonly defer?: (fill: () => void) => void;
  /** Takes the next messages, at most `max`; by default those that were pushed, in their order. */
  readonly take?: (max: number) => Message[];
}

export class HandlerPool<Message> {
  readonly #options: HandlerPoolOptions<Message>;
  readonly #running = new Set<Promise<void>>();
  #waiting: Message[] = [];
  #isScheduled = false;

  constructor(options: HandlerPoolOptions<Message>) {
    this.#options = options;
  }

  push(message: Message): void {
    this.#waiting.push(message);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { defer = queueMicrotask } = this.#options;
    defer(() => {
      this.#isScheduled = false;
      this.fill();
    });
  }

  /** Removes the messages that no handler has seen; with a condition, those that meet it. */
  takeWaiting(isTaken: (message: Message) => boolean = () => true): Message[] {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((message) => !isTaken(message));
    return waiting.filter(isTaken);
  }

  /** Resolves when the running batches are settled. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Begins as many batches as there is room for. */
  fill(): void {
    const { batchMax, concurrency, stopping, take = (max) => this.#waiting.splice(0, max) } = this.#options;
    while (!stopping.aborted && this.#running.size < concurrency) {
      const batch = take(batchMax);
      if (batch.length === 0) return;
      const run = this.#run(batch).finally(() => {
        this.#running.delete(run);
        this.fill();
      });
      this.#running.add(run);
    }
  }

  async #run(batch: readonly Message[]): Promise<void> {
    await this.#options.settle(batch, await this.#handle(batch));
  }

  async #handle(batch: readonly Message[]): Promise<readonly Outcome[]> {
    const { handle, toDelivery, retryMs, onHandlerError, stopping } = this.#options;
    try {
      const outcomes = await handle(batch.map(toDelivery), stopping);
      if (outcomes.length >= batch.length) return outcomes;
      return batch.map((_, index) => outcomes[index] ?? retry(retryMs, "the handler returned no outcome for it"));
    } catch (error) {
      onHandlerError?.(error, batch);
      return batch.map(() => retry(retryMs, describeError(error)));
    }
  }
}
