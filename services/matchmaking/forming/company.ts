/** With whom a ticket plays: those nearest to it who may meet it and each other, in a region that all of them take. */
import type { ModeRules } from "../rules/types.ts";
import type { Candidate } from "./candidates.ts";
import type { Line } from "./line.ts";
import type { Packer, Plan } from "./packing.ts";

/** Those who wait for a region, by the size of their party. */
export type LinesBySize = ReadonlyMap<number, Line>;

export interface Company {
  /** The asking one, then the others, nearest first. */
  readonly tickets: readonly Candidate[];
  readonly plan: Plan;
}

export interface Search {
  readonly rules: Pick<ModeRules, "teams" | "teamSize">;
  readonly lines: LinesBySize;
  readonly packer: Packer;
}

/**
 * The lines hold only those who have waited less long than the asking one: so its reach is what counts, measured from it.
 *
 * Others are added one by one, nearest first, until parties of these sizes fill the teams. Of each size no more are looked
 * at than a match could seat, and so a look in vain stays short, however many wait.
 */
export function companyFor(asking: Candidate, { rules, lines, packer }: Search): Company | undefined {
  const players = rules.teams * rules.teamSize;
  const guests = guestList(asking);
  const counts: number[] = [];
  const walks = [...lines].map(([size, line]) => walkOf(line, asking, Math.floor((players - asking.size) / size)));
  let seated = asking.size;
  for (let walk = nearestOf(walks, asking); walk?.next; walk = nearestOf(walks, asking)) {
    const candidate = walk.next;
    const isWelcome = guests.add(candidate);
    walk.step(isWelcome);
    if (!isWelcome) continue;
    counts[candidate.size] = (counts[candidate.size] ?? 0) + 1;
    seated += candidate.size;
    const plan = seated >= players ? packer(asking.size, counts) : undefined;
    if (plan) return { tickets: chosen(guests.all, plan), plan };
  }
  return undefined;
}

interface Walk {
  readonly next: Candidate | undefined;
  /** Goes on to the next; `counts`: one less is wanted. */
  step(counts: boolean): void;
}

function walkOf(line: Line, { skill, reach }: Candidate, wanted: number): Walk {
  const candidates = line.outward(skill, reach);
  let left = wanted;
  let next = left > 0 ? candidates.next().value : undefined;
  return {
    get next() {
      return next;
    },
    step(counts) {
      if (counts) left--;
      next = left > 0 ? candidates.next().value : undefined;
    },
  };
}

function nearestOf(walks: readonly Walk[], { skill }: Candidate): Walk | undefined {
  let nearest: Walk | undefined;
  for (const walk of walks) {
    if (!walk.next) continue;
    const closer = nearest?.next
      ? Math.abs(walk.next.skill - skill) - Math.abs(nearest.next.skill - skill) || walk.next.place - nearest.next.place
      : -1;
    if (closer < 0) nearest = walk;
  }
  return nearest;
}

/** Lets nobody in who is not to meet one of those inside. */
function guestList(first: Candidate) {
  const all = [first];
  const users = new Set([first.ticket.userId]);
  const avoided = new Set(first.avoid);
  return {
    all,
    add(candidate: Candidate): boolean {
      const { userId } = candidate.ticket;
      if (avoided.has(userId) || candidate.avoid.some((user) => users.has(user))) return false;
      all.push(candidate);
      users.add(userId);
      for (const user of candidate.avoid) avoided.add(user);
      return true;
    },
  };
}

/** As many of each size as the plan has, nearest first; the asking one comes first of all. */
function chosen(guests: readonly Candidate[], plan: Plan): readonly Candidate[] {
  const wanted = new Map<number, number>();
  for (const size of plan.flat()) wanted.set(size, (wanted.get(size) ?? 0) + 1);
  return guests.filter(({ size }) => {
    const left = wanted.get(size) ?? 0;
    wanted.set(size, left - 1);
    return left > 0;
  });
}
