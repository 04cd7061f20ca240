/** Faults of a broker, injected by the paper broker and by the simulator. */

export const faults = [
  "lost-before", // no reply, and not taken
  "lost-after", // taken, but no reply
  "error-before", // an error without a result; not taken
  "error-after", // the same error, but taken
  "slow", // taken at once, a late reply
  "late", // taken late, and replied to then
  "already", // taken, but the reply says that it was taken before
  "reject", // rejected permanently
  "rate-limited", // refused for now, with Retry-After
  "busy", // refused for now
] as const;

export type Fault = (typeof faults)[number];

export const isFault = (text: string): text is Fault => (faults as readonly string[]).includes(text);

export interface FaultPlan {
  /** The fault of the next order, if any. */
  next(): Fault | undefined;
  /** Faults for the next orders, one each, before any random ones. */
  queue(...wanted: readonly Fault[]): void;
}

/** Chances from 0 to 1 by name. The same seed gives the same faults in the same order. */
export function faultPlan(chances: ReadonlyMap<Fault, number> = new Map(), seed = 1): FaultPlan {
  const queued: Fault[] = [];
  const random = seededRandom(seed);
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

/** Mulberry32: pseudo-random numbers from 0 to 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
