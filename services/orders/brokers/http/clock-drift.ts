/**
 * Measures the broker's clock against ours, by the Date header of its replies. Our side is the monotonic clock, so that a change of
 * the system's time does not change the broker's.
 */

export interface ClockDrift {
  /** The broker's time, as measured; our own until then. */
  clock(): Date;
  /** Whether the broker has replied: only then is its clock known as well as it can be. */
  isMeasured(): boolean;
  /** `startedAt` and `endedAt` are times of `performance.now()`. */
  observe(date: string | undefined, around: { readonly startedAt: number; readonly endedAt: number }): void;
}

// The header has whole seconds: half a second is the best estimate, and a smaller difference is no drift.
const secondMs = 1_000;

export function measureDrift(onDrift: (driftMs: number) => void = () => {}): ClockDrift {
  let offsetMs = ownOffsetMs();
  let measured = false;
  return {
    clock: () => new Date(performance.now() + offsetMs),
    isMeasured: () => measured,
    observe(date = "", { startedAt, endedAt }) {
      measured = true;
      const driftMs = Date.parse(date) + secondMs / 2 - ((startedAt + endedAt) / 2 + ownOffsetMs());
      if (!Number.isFinite(driftMs)) return;
      const uncertainMs = secondMs / 2 + (endedAt - startedAt) / 2;
      const certainMs = Math.abs(driftMs) <= uncertainMs ? 0 : driftMs;
      offsetMs = ownOffsetMs() + certainMs;
      onDrift(certainMs);
    },
  };
}

/** What to add to `performance.now()` for the system's time. */
const ownOffsetMs = () => Date.now() - performance.now();
