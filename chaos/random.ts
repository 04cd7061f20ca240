/** Seeded random numbers: the same seed gives the same numbers on every machine. */

export interface Random {
  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** An integer from `min` to `max`, inclusive. */
  between(min: number, max: number): number;
  chance(share: number): boolean;
  pick<T>(of: readonly T[]): T;
  /** Picks by weight: twice the weight, twice as often. */
  weighted<T extends { readonly weight: number }>(of: readonly T[]): T;
  shuffled<T>(of: readonly T[]): T[];
  /** An independent generator for a name. */
  for(name: string): Random;
}

/** Mulberry32: 32 bits of state are enough, because nothing here is secret. */
export function seededRandom(seed: string): Random {
  let state = hashText(seed);
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  const pick = <T>(of: readonly T[]): T => {
    if (of.length === 0) throw new Error("there is nothing to pick from");
    return of[between(0, of.length - 1)] as T;
  };
  return {
    next,
    between,
    pick,
    chance: (share) => next() < share,
    weighted(of) {
      let left = next() * of.reduce((sum, { weight }) => sum + weight, 0);
      const chosen = of.find(({ weight }) => {
        left -= weight;
        return left < 0;
      });
      return chosen ?? pick(of);
    },
    shuffled(of) {
      const all = [...of];
      for (let last = all.length - 1; last > 0; last--) {
        const other = between(0, last);
        [all[last], all[other]] = [all[other] as never, all[last] as never];
      }
      return all;
    },
    for: (name) => seededRandom(`${seed}/${name}`),
  };
}

/** FNV-1a: similar seeds give different states. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash | 0;
}
