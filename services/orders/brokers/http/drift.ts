/** How far the broker's clock is from ours, by the Date header of its answers. */

export interface Drift {
  /** The broker's time, as far as it is known. */
  clock(): Date;
  heard(date: string | undefined, around: { readonly beganAt: number; readonly endedAt: number }): void;
}

// The header has whole seconds: half of one is the best guess, and what is nearer than this is no drift at all.
const secondMs = 1_000;

export function measureDrift(onDrift: (driftMs: number) => void = () => {}): Drift {
  let driftMs = 0;
  return {
    clock: () => new Date(Date.now() + driftMs),
    heard(date = "", { beganAt, endedAt }) {
      const measured = Date.parse(date) + secondMs / 2 - (beganAt + endedAt) / 2;
      if (!Number.isFinite(measured)) return;
      const uncertainMs = secondMs / 2 + (endedAt - beganAt) / 2;
      driftMs = Math.abs(measured) <= uncertainMs ? 0 : measured;
      onDrift(driftMs);
    },
  };
}
