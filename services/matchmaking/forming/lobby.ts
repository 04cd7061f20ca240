/** Finds the tickets for one match: the nearest in skill that are compatible with each other, in one region. */
import type { ModeRules } from "../rules/types.ts";
import type { Candidate } from "./candidates.ts";
import type { Packer, Plan } from "./packing.ts";
import type { SkillIndex } from "./skill-index.ts";

/** The candidates of a region, by party size. */
export type SkillIndexBySize = ReadonlyMap<number, SkillIndex>;

export interface Lobby {
  /** The oldest ticket, then the others, nearest first. */
  readonly tickets: readonly Candidate[];
  readonly plan: Plan;
}

export interface Search {
  readonly rules: Pick<ModeRules, "teams" | "teamSize">;
  readonly indexes: SkillIndexBySize;
  readonly packer: Packer;
}

/**
 * The indexes contain only tickets that joined after `oldest`, so its skill range decides.
 *
 * Tickets are added one by one, nearest first, until their party sizes fill the teams. It considers only as many tickets of
 * each size as fit into a match, which keeps an unsuccessful search in a long queue short.
 */
export function findLobby(oldest: Candidate, { rules, indexes, packer }: Search): Lobby | undefined {
  const players = rules.teams * rules.teamSize;
  const compatible = compatibleTickets(oldest);
  const counts: number[] = [];
  const walks = [...indexes].map(([size, index]) => walk(index, oldest, Math.floor((players - oldest.size) / size)));
  let seated = oldest.size;
  for (let nearest = nearestWalk(walks, oldest); nearest?.next; nearest = nearestWalk(walks, oldest)) {
    const candidate = nearest.next;
    const isAdded = compatible.add(candidate);
    nearest.step(isAdded);
    if (!isAdded) continue;
    counts[candidate.size] = (counts[candidate.size] ?? 0) + 1;
    seated += candidate.size;
    const plan = seated >= players ? packer(oldest.size, counts) : undefined;
    if (plan) return { tickets: selectPlanned(compatible.all, plan), plan };
  }
  return undefined;
}

/** A walk through the candidates of one party size, nearest first. */
interface Walk {
  readonly next: Candidate | undefined;
  step(isAdded: boolean): void;
}

function walk(index: SkillIndex, { skill, skillRange }: Candidate, wanted: number): Walk {
  const candidates = index.nearestFirst(skill, skillRange);
  let left = wanted;
  let next = left > 0 ? candidates.next().value : undefined;
  return {
    get next() {
      return next;
    },
    step(isAdded) {
      if (isAdded) left--;
      next = left > 0 ? candidates.next().value : undefined;
    },
  };
}

function nearestWalk(walks: readonly Walk[], { skill }: Candidate): Walk | undefined {
  let nearest: Walk | undefined;
  for (const each of walks) {
    if (!each.next) continue;
    const order = nearest?.next
      ? Math.abs(each.next.skill - skill) - Math.abs(nearest.next.skill - skill) ||
        each.next.queueOrder - nearest.next.queueOrder
      : -1;
    if (order < 0) nearest = each;
  }
  return nearest;
}

/** Adds a ticket only if it and those added before do not avoid each other. */
function compatibleTickets(first: Candidate) {
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

/** As many of each size as the plan has, in the given order. */
function selectPlanned(tickets: readonly Candidate[], plan: Plan): readonly Candidate[] {
  const wanted = new Map<number, number>();
  for (const size of plan.flat()) wanted.set(size, (wanted.get(size) ?? 0) + 1);
  return tickets.filter(({ size }) => {
    const left = wanted.get(size) ?? 0;
    wanted.set(size, left - 1);
    return left > 0;
  });
}
