/**
 * Whether parties fill teams exactly, by their sizes alone: a party of three and one of two make no team of four.
 *
 * Each answer is kept for the round, for many ask the same. The search is bounded: sizes that would take longer than
 * `stepsMax` to fit together count as if they did not.
 */

/** The sizes of the parties in each team; the asking one's is the first. */
export type Plan = readonly (readonly number[])[];

/** `others`: how many parties there are of each size, beside the asking one. */
export type Packer = (asking: number, others: readonly number[]) => Plan | undefined;

// Parties of up to eight fit together within a few dozen steps, where they do.
const stepsMax = 2_000;

export function packerOf({ teams, teamSize }: { readonly teams: number; readonly teamSize: number }): Packer {
  const known = new Map<string, Plan | undefined>();
  return (asking, others) => {
    const key = `${asking}:${others.join()}`;
    if (!known.has(key)) known.set(key, pack([...others]));
    return known.get(key);

    function pack(counts: number[]): Plan | undefined {
      const plan: number[][] = Array.from({ length: teams }, () => []);
      plan[0]?.push(asking);
      let steps = stepsMax;

      /** Large parties first, for they are the hardest to place; never one larger than the last, which was tried before. */
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
      return fill(0, teamSize - asking, teamSize) ? plan : undefined;
    }
  };
}
