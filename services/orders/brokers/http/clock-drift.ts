/** Measures the broker's clock against ours, by the Date header of its replies. */

export interface ClockDrift {
  /** The broker's time, as measured. */
  clock(): Date;
  observe(date: string | undefined, around: { readonly startedAt: number; readonly endedAt: number }): void;
}

// The header has whole seconds: half a second is the best estimate, and a smaller difference is no drift.
const secondMs = 1_000;

export function measureDrift(onDrift: (driftMs: number) => void = () => {}): ClockDrift {
  let driftMs = 0;
  return {
    clock: () => new Date(Date.now() + driftMs),
    observe(date = "", { startedAt, endedAt }) {
      const measured = Date.parse(date) + secondMs / 2 - (startedAt + endedAt) / 2;
      if (!Number.isFinite(measured)) return;
      const uncertainMs = secondMs / 2 + (endedAt - startedAt) / 2;
      driftMs = Math.abs(measured) <= uncertainMs ? 0 : measured;
      onDrift(driftMs);
    },
  };
}
