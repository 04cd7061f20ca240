/**
 * Decides whether parties of given sizes fill the teams exactly: a party of three and one of two do not make a team of four.
 *
 * Results are cached for the round, because the same sizes come often. The search is bounded: after `stepsMax` steps the sizes
 * count as not fitting.
 */

/** The party sizes of each team; the first one is that of the oldest ticket. */
export type Plan = readonly (readonly number[])[];

/** `others`: how many other parties there are of each size. */
export type Packer = (oldest: number, others: readonly number[]) => Plan | undefined;

// If parties of up to eight fit, a few dozen steps find it.
const stepsMax = 2_000;

export function createPacker({ teams, teamSize }: { readonly teams: number; readonly teamSize: number }): Packer {
  const cache = new Map<string, Plan | undefined>();
  return (oldest, others) => {
    const key = `${oldest}:${others.join()}`;
    if (!cache.has(key)) cache.set(key, pack([...others]));
    return cache.get(key);

    function pack(counts: number[]): Plan | undefined {
      const plan: number[][] = Array.from({ length: teams }, () => []);
      plan[0]?.push(oldest);
      let steps = stepsMax;

      /** Large parties first, because they are the hardest to fit; sizes never increase, so no combination is tried twice. */
      function fill(team: number, room: number, largest: number): boolean {
        if (steps-- <= 0) return false;
        if (room === 0) return team + 1 === teams || fill(team + 1, teamSize, teamSize);
        for (let size = Math.min(room, largest); size >= 1; size--) {
          const count = counts[size] ?? 0;
          if (count === 0) continue;
          counts[size] = count - 1;
          plan[team]?.push(size);
          if (fill(team, room - size, size)) return true;
          plan[team]?.pop();
          counts[size] = count;
        }
        return false;
      }
      return fill(0, teamSize - oldest, teamSize) ? plan : undefined;
    }
  };
}
