/**
 * Who plays whom: from the tickets that wait to the matches that the rules make of them now. A pure function, so that a
 * simulation makes of the same tickets the same matches as the service.
 *
 * Everybody gets their turn in the order of waiting, and is matched if that is possible with those who have waited less
 * long. So in every match
 *  - all are within what the one who has waited longest accepts by now, measured from its skill;
 *  - all take the region: they name it, and are no further from it than each of them accepts by now;
 *  - nobody meets somebody whom one of the two is not to meet, or themselves;
 *  - teams are full, and a ticket's players are in one team.
 * Of those possible the nearest in skill are taken, and of those equally near who has waited longest; the region is the
 * first that the longest-waiting one likes in which a match is possible. In a mode that weighs nothing that is the order
 * of waiting, as `matchInOrder` of a queue has it.
 */
import type { Proposal } from "../queue/index.ts";
import type { ModeRules } from "../rules/types.ts";
import type { OpenTicket } from "../tickets.ts";
import { balancedTeams, type Team } from "./balance.ts";
import { anywhere, type Candidate, candidatesOf } from "./candidates.ts";
import { companyFor, type LinesBySize } from "./company.ts";
import { lineOf } from "./line.ts";
import { packerOf } from "./packing.ts";

/** `tickets` are in the order of their joining; `now` is by the clock of their queue. */
export function formMatches(rules: ModeRules, tickets: readonly OpenTicket[], now: number): Proposal[] {
  const candidates = candidatesOf(rules, tickets, now);
  const lines = linesByRegion(candidates);
  const packer = packerOf(rules);
  const taken = new Set<Candidate>();
  const take = (candidate: Candidate) => {
    taken.add(candidate);
    for (const region of candidate.regions) lines.get(region)?.get(candidate.size)?.remove(candidate);
  };
  const proposals: Proposal[] = [];
  for (const asking of candidates) {
    if (taken.has(asking)) continue;
    // Matched now or not: whoever comes after it has found out that it is not for them.
    take(asking);
    for (const region of asking.regions) {
      const company = companyFor(asking, { rules, lines: lines.get(region) ?? new Map(), packer });
      if (!company) continue;
      company.tickets.forEach(take);
      proposals.push(proposalOf(balancedTeams({ ...company, teamSize: rules.teamSize }), region));
      break;
    }
  }
  return proposals;
}

function linesByRegion(candidates: readonly Candidate[]): ReadonlyMap<string, LinesBySize> {
  const regions = new Map<string, Candidate[]>();
  for (const candidate of candidates)
    for (const region of candidate.regions) {
      const there = regions.get(region);
      if (there) there.push(candidate);
      else regions.set(region, [candidate]);
    }
  const bySize = (there: readonly Candidate[]) => [...Map.groupBy(there, ({ size }) => size)];
  return new Map([...regions].map(([region, there]) => [region, linesOf(bySize(there))]));
}

const linesOf = (sizes: readonly (readonly [number, readonly Candidate[]])[]): LinesBySize =>
  new Map(sizes.map(([size, candidates]) => [size, lineOf(candidates)]));

function proposalOf(teams: readonly Team[], region: string): Proposal {
  const seats = teams.flatMap((team, at) => team.map(({ ticket, place }) => ({ ticket, place, team: at + 1 })));
  return {
    seats: seats.sort((a, b) => a.place - b.place).map(({ ticket, team }) => ({ ticketId: ticket.ticketId, team })),
    ...(region !== anywhere && { region }),
  };
}
