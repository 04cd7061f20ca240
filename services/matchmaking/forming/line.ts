/**
 * Candidates in the order of their skill, out of which some are taken while others are looked for.
 *
 * A walk begins at a skill and goes outward on both sides, nearest first and, of those equally near, who has waited
 * longest. It ends where the reach does, so that a look in vain costs no more than a look around; and those who were
 * taken are stepped over at once, however many they are.
 */
import type { Candidate } from "./candidates.ts";

export interface Line {
  remove(candidate: Candidate): void;
  outward(skill: number, reach: number): Iterator<Candidate, undefined>;
}

export function lineOf(candidates: readonly Candidate[]): Line {
  const sorted = candidates.toSorted((a, b) => a.skill - b.skill || a.place - b.place);
  const positions = new Map(sorted.map((candidate, at) => [candidate, at]));
  const after = links(sorted.length + 1);
  const before = links(sorted.length + 1);
  /** The first position from `at` on that was not taken; the length of the line where there is none. */
  const from = (at: number) => follow(after, at);
  /** The last position up to `at` that was not taken, or -1. Kept one higher, so that 0 stands for none. */
  const upTo = (at: number) => follow(before, at + 1) - 1;
  const skillAt = (at: number) => sorted[at]?.skill ?? Number.NaN;

  /** Where the first is who has this skill or more. */
  function firstWith(skill: number): number {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (skillAt(middle) < skill) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    remove(candidate) {
      const at = positions.get(candidate);
      if (at === undefined) return;
      after[at] = at + 1;
      before[at + 1] = at;
    },

    *outward(skill, reach) {
      const start = firstWith(skill);
      let right = from(start);
      // To the left those of one skill are walked from their first on: that one has waited longest.
      let leftSkill = skillAt(upTo(start - 1));
      let left = from(firstWith(leftSkill));
      while (true) {
        const rightOne = sorted[right];
        const leftOne = Number.isNaN(leftSkill) ? undefined : sorted[left];
        const isLeft = leftOne !== undefined && (rightOne === undefined || isNearer(leftOne, rightOne, skill));
        const next = isLeft ? leftOne : rightOne;
        if (next === undefined || Math.abs(next.skill - skill) > reach) return undefined;
        yield next;
        if (!isLeft) right = from(right + 1);
        else {
          left = from(left + 1);
          if (left < start && skillAt(left) === leftSkill) continue;
          leftSkill = skillAt(upTo(firstWith(leftSkill) - 1));
          left = from(firstWith(leftSkill));
        }
      }
    },
  };
}

function isNearer(a: Candidate, b: Candidate, skill: number): boolean {
  const difference = Math.abs(a.skill - skill) - Math.abs(b.skill - skill);
  return difference < 0 || (difference === 0 && a.place < b.place);
}

const links = (length: number): Int32Array => Int32Array.from({ length }, (_, at) => at);

/** To the end of a chain of links, which is made shorter on the way. */
function follow(chain: Int32Array, start: number): number {
  let at = start;
  for (let next = chain[at] ?? at; next !== at; next = chain[at] ?? at) {
    const skip = chain[next] ?? next;
    chain[at] = skip;
    at = skip;
  }
  return at;
}
