/**
 * Who plays in which team, so that the strongest and the weakest are as near to each other as can be found.
 *
 * A team's strength is the sum over its players, each as skilled as their ticket says. The first try deals the tickets
 * out, largest and strongest first, always to the weakest team that has room; then others are tried, a bounded number.
 */
import type { Candidate } from "./candidates.ts";
import type { Plan } from "./packing.ts";

export type Team = readonly Candidate[];

export interface Roster {
  readonly tickets: readonly Candidate[];
  /** One way that is known to fit. */
  readonly plan: Plan;
  readonly teamSize: number;
}

// All ways of two teams of four, and enough of larger ones; about a tenth of a millisecond.
const stepsMax = 1_000;

interface Filling {
  readonly members: Candidate[];
  room: number;
  strength: number;
}

/** Teams in the order of waiting: that of the longest-waiting ticket is the first. */
export function balancedTeams({ tickets, plan, teamSize }: Roster): readonly Team[] {
  const order = tickets.toSorted((a, b) => b.size - a.size || b.skill - a.skill || a.place - b.place);
  // From the weakest on, so that whoever is added makes a team stronger. All teams are equally large: nothing else changes.
  const floor = Math.min(...tickets.map(({ skill }) => skill));
  const teams: Filling[] = plan.map(() => ({ members: [], room: teamSize, strength: 0 }));
  let best: { readonly teams: readonly Team[]; readonly spread: number } | undefined;
  let steps = stepsMax;

  function deal(at: number): void {
    if (best?.spread === 0 || steps-- <= 0) return;
    const ticket = order[at];
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
      deal(at + 1);
      team.members.pop();
      team.room += ticket.size;
      team.strength = before;
    }
  }
  deal(0);
  return inOrderOfWaiting(best?.teams ?? asPlanned(tickets, plan));
}

/** Those that have room. Of several that are empty one will do: the others would only be the same under another number. */
function weakestFirst(teams: readonly Filling[], size: number, teamSize: number): readonly Filling[] {
  const empty = teams.find(({ room }) => room === teamSize);
  return teams
    .filter((team) => team.room >= size && (team.room < teamSize || team === empty))
    .sort((a, b) => a.strength - b.strength || b.room - a.room);
}

function asPlanned(tickets: readonly Candidate[], plan: Plan): readonly Team[] {
  const bySize = Map.groupBy(tickets, ({ size }) => size);
  return plan.map((sizes) => sizes.flatMap((size) => bySize.get(size)?.shift() ?? []));
}

const inOrderOfWaiting = (teams: readonly Team[]): readonly Team[] =>
  teams
    .map((team) => team.toSorted((a, b) => a.place - b.place))
    .sort((a, b) => (a[0]?.place ?? 0) - (b[0]?.place ?? 0));
