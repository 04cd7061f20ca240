/** The event loop delay: the 99th percentile of the last few seconds, so that a slow start does not count for long. */
import { monitorEventLoopDelay } from "node:perf_hooks";

const windowMs = 5_000;
const resolutionMs = 10;

export class LoopDelay implements Disposable {
  readonly #histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  readonly #timer: NodeJS.Timeout;
  #lastWindowMs = 0;

  constructor() {
    this.#histogram.enable();
    this.#timer = setInterval(() => {
      this.#lastWindowMs = this.#thisWindowMs();
      this.#histogram.reset();
    }, windowMs).unref();
  }

  get p99Ms(): number {
    return Math.max(this.#lastWindowMs, this.#thisWindowMs());
  }

  #thisWindowMs(): number {
    return this.#histogram.count === 0 ? 0 : this.#histogram.percentile(99) / 1e6;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#histogram.disable();
  }
}
