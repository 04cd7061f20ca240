/** What can go wrong with a broker, by name: injected by the paper broker and by the simulator, for tests and rehearsals. */

export const faults = [
  "lost-before", // no answer, and nothing taken
  "lost-after", // taken, but no answer
  "error-before", // an error that says nothing; nothing taken
  "error-after", // the same error, though it was taken
  "slow", // taken at once, answered late
  "late", // taken late, and answered then
  "already", // taken, and answered as if it had been taken before: a confirmation that comes twice
  "reject", // refused for good
  "rate-limited", // refused for now, with a time to come back
  "busy", // refused for now
] as const;

export type Fault = (typeof faults)[number];

export const isFault = (text: string): text is Fault => (faults as readonly string[]).includes(text);

export interface FaultPlan {
  /** What is to go wrong with the order that comes now. */
  next(): Fault | undefined;
  /** These come next, one for each order, before any that come by chance. */
  queue(...wanted: readonly Fault[]): void;
}

/** Chances from 0 to 1 by name. The same seed makes the same faults in the same order. */
export function faultPlan(chances: ReadonlyMap<Fault, number> = new Map(), seed = 1): FaultPlan {
  const queued: Fault[] = [];
  const random = seeded(seed);
  return {
    next() {
      const wanted = queued.shift();
      if (wanted) return wanted;
      let at = random();
      for (const [fault, chance] of chances) {
        at -= chance;
        if (at < 0) return fault;
      }
      return undefined;
    },
    queue: (...wanted) => void queued.push(...wanted),
  };
}

/** Mulberry32: numbers from 0 to 1 that look random, the same for a seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
