/**
 * Distributes tickets over teams so that the difference between the strongest and the weakest team is small.
 *
 * A team's strength is the sum of the skills of its players; a ticket's skill counts for each of its players. The search puts
 * the largest and strongest tickets first, each into the weakest team that has room, and then tries a bounded number of other
 * distributions.
 */
import type { Candidate } from "./candidates.ts";
import type { Plan } from "./packing.ts";

export type Team = readonly Candidate[];

export interface TeamsInput {
  readonly tickets: readonly Candidate[];
  /** A distribution that fits. */
  readonly plan: Plan;
  readonly teamSize: number;
}

// Covers all distributions over two teams of four; takes about a tenth of a millisecond.
const stepsMax = 1_000;

interface TeamSoFar {
  readonly members: Candidate[];
  room: number;
  strength: number;
}

/** The team of the oldest ticket is the first. */
export function balancedTeams({ tickets, plan, teamSize }: TeamsInput): readonly Team[] {
  const order = tickets.toSorted((a, b) => b.size - a.size || b.skill - a.skill || a.queueOrder - b.queueOrder);
  // Relative to the weakest ticket, so that every ticket makes a team stronger. Teams are equally large, so differences stay.
  const floor = Math.min(...tickets.map(({ skill }) => skill));
  const teams: TeamSoFar[] = plan.map(() => ({ members: [], room: teamSize, strength: 0 }));
  let best: { readonly teams: readonly Team[]; readonly spread: number } | undefined;
  let steps = stepsMax;

  function assign(index: number): void {
    if (best?.spread === 0 || steps-- <= 0) return;
    const ticket = order[index];
    if (ticket === undefined) {
      const strengths = teams.map(({ strength }) => strength);
      const spread = Math.max(...strengths) - Math.min(...strengths);
      if (!best || spread < best.spread) best = { teams: teams.map(({ members }) => [...members]), spread };
      return;
    }
    const strength = (ticket.skill - floor) * ticket.size;
    for (const team of weakestFirst(teams, ticket.size, teamSize)) {
      const before = team.strength;
      team.members.push(ticket);
      team.room -= ticket.size;
      team.strength += strength;
      assign(index + 1);
      team.members.pop();
      team.room += ticket.size;
      team.strength = before;
    }
  }
  assign(0);
  return inQueueOrder(best?.teams ?? plannedTeams(tickets, plan));
}

/** Teams with room. Only one of the empty teams: the others would give the same distributions. */
function weakestFirst(teams: readonly TeamSoFar[], size: number, teamSize: number): readonly TeamSoFar[] {
  const empty = teams.find(({ room }) => room === teamSize);
  return teams
    .filter((team) => team.room >= size && (team.room < teamSize || team === empty))
    .sort((a, b) => a.strength - b.strength || b.room - a.room);
}

function plannedTeams(tickets: readonly Candidate[], plan: Plan): readonly Team[] {
  const bySize = Map.groupBy(tickets, ({ size }) => size);
  return plan.map((sizes) => sizes.flatMap((size) => bySize.get(size)?.shift() ?? []));
}

const inQueueOrder = (teams: readonly Team[]): readonly Team[] =>
  teams
    .map((team) => team.toSorted((a, b) => a.queueOrder - b.queueOrder))
    .sort((a, b) => (a[0]?.queueOrder ?? 0) - (b[0]?.queueOrder ?? 0));
