/**
 * The event loop delay: the 99th percentile of the last few seconds, so that a slow start does not count for long.
 *
 * All services of a process share one measurement: its timer wakes the process, which costs more than all polls of an idle one.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";

const windowMs = 5_000;
/** A delay is measured from this on. Those that matter are a hundred times longer (readiness.ts). */
const resolutionMs = 20;

interface Measurement {
  readonly histogram: ReturnType<typeof monitorEventLoopDelay>;
  readonly timer: NodeJS.Timeout;
  lastWindowMs: number;
  users: number;
}

let shared: Measurement | undefined;

function startMeasurement(): Measurement {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  const timer = setInterval(() => {
    measurement.lastWindowMs = thisWindowMs(measurement);
    histogram.reset();
  }, windowMs).unref();
  const measurement = { histogram, timer, lastWindowMs: 0, users: 0 };
  return measurement;
}

const thisWindowMs = ({ histogram }: Measurement): number =>
  histogram.count === 0 ? 0 : histogram.percentile(99) / 1e6;

export class LoopDelay implements Disposable {
  readonly #measurement: Measurement;
  #isDisposed = false;

  constructor() {
    shared ??= startMeasurement();
    shared.users++;
    this.#measurement = shared;
  }

  get p99Ms(): number {
    return Math.max(this.#measurement.lastWindowMs, thisWindowMs(this.#measurement));
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (--this.#measurement.users > 0) return;
    clearInterval(this.#measurement.timer);
    this.#measurement.histogram.disable();
    shared = undefined;
  }
}
