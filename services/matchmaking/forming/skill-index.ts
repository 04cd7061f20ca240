/**
 * Candidates sorted by skill, with removal.
 *
 * A search starts at a skill and goes outward on both sides: nearest first, and among equally near candidates the oldest. It
 * ends at the skill range. Removed candidates are skipped in almost constant time, by links that point past them.
 */
import type { Candidate } from "./candidates.ts";

export interface SkillIndex {
  remove(candidate: Candidate): void;
  nearestFirst(skill: number, skillRange: number): Iterator<Candidate, undefined>;
}

export function createSkillIndex(candidates: readonly Candidate[]): SkillIndex {
  const sorted = candidates.toSorted((a, b) => a.skill - b.skill || a.queueOrder - b.queueOrder);
  const positions = new Map(sorted.map((candidate, at) => [candidate, at]));
  const after = links(sorted.length + 1);
  const before = links(sorted.length + 1);
  /** The first position at or after `at` that is not removed; the length of the list if there is none. */
  const nextFrom = (at: number) => follow(after, at);
  /** The last position at or before `at` that is not removed, or -1. The links are one higher, so that 0 means none. */
  const lastUpTo = (at: number) => follow(before, at + 1) - 1;
  const skillAt = (at: number) => sorted[at]?.skill ?? Number.NaN;

  /** The first position with this skill or more. */
  function firstAtLeast(skill: number): number {
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

    *nearestFirst(skill, skillRange) {
      const start = firstAtLeast(skill);
      let right = nextFrom(start);
      // On the left, candidates of equal skill are visited from the first one on, because that is the oldest.
      let leftSkill = skillAt(lastUpTo(start - 1));
      let left = nextFrom(firstAtLeast(leftSkill));
      while (true) {
        const rightOne = sorted[right];
        const leftOne = Number.isNaN(leftSkill) ? undefined : sorted[left];
        const isLeft = leftOne !== undefined && (rightOne === undefined || isNearer(leftOne, rightOne, skill));
        const next = isLeft ? leftOne : rightOne;
        if (next === undefined || Math.abs(next.skill - skill) > skillRange) return undefined;
        yield next;
        if (!isLeft) right = nextFrom(right + 1);
        else {
          left = nextFrom(left + 1);
          if (left < start && skillAt(left) === leftSkill) continue;
          leftSkill = skillAt(lastUpTo(firstAtLeast(leftSkill) - 1));
          left = nextFrom(firstAtLeast(leftSkill));
        }
      }
    },
  };
}

function isNearer(a: Candidate, b: Candidate, skill: number): boolean {
  const difference = Math.abs(a.skill - skill) - Math.abs(b.skill - skill);
  return difference < 0 || (difference === 0 && a.queueOrder < b.queueOrder);
}

const links = (length: number): Int32Array => Int32Array.from({ length }, (_, at) => at);

/** Follows links to their end and shortens them on the way. */
function follow(chain: Int32Array, start: number): number {
  let at = start;
  for (let next = chain[at] ?? at; next !== at; next = chain[at] ?? at) {
    const skip = chain[next] ?? next;
    chain[at] = skip;
    at = skip;
  }
  return at;
}
