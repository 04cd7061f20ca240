/**
 * Forms matches: which of the waiting tickets play together under the rules now. A pure function, so a simulation gets the
 * same matches from the same tickets as the service.
 *
 * Each ticket is tried in join order and is matched with tickets that joined later, if that is possible. In every match
 *  - all tickets are within the skill range that the oldest one accepts by now, measured from its skill;
 *  - all tickets accept the region: they name it, and their latency to it is within what each accepts by now;
 *  - no user meets a user whom one of the two avoids, or themselves;
 *  - teams are full, and the players of a ticket are in one team.
 * Among the possible tickets the nearest in skill are chosen, and among those the oldest. The region is the first one on the
 * list of the oldest ticket in which a match is possible. In a mode without conditions the result is the join order.
 */
import type { Proposal } from "../queue/index.ts";
import type { OpenTicket } from "../queue/ticket.ts";
import type { ModeRules } from "../rules/types.ts";
import { balancedTeams, type Team } from "./balance.ts";
import { anywhere, type Candidate, toCandidates } from "./candidates.ts";
import { findLobby, type SkillIndexBySize } from "./lobby.ts";
import { createPacker } from "./packing.ts";
import { createSkillIndex } from "./skill-index.ts";

/** `tickets` are in join order; `now` is by the clock of their queue. */
export function formMatches(rules: ModeRules, tickets: readonly OpenTicket[], now: number): Proposal[] {
  const candidates = toCandidates(rules, tickets, now);
  const indexes = indexByRegion(candidates);
  const packer = createPacker(rules);
  const taken = new Set<Candidate>();
  const take = (candidate: Candidate) => {
    taken.add(candidate);
    for (const region of candidate.regions) indexes.get(region)?.get(candidate.size)?.remove(candidate);
  };
  const proposals: Proposal[] = [];
  for (const oldest of candidates) {
    if (taken.has(oldest)) continue;
    // Taken even if it finds no match: a match of a later ticket with it would have been found now.
    take(oldest);
    for (const region of oldest.regions) {
      const lobby = findLobby(oldest, { rules, indexes: indexes.get(region) ?? new Map(), packer });
      if (!lobby) continue;
      lobby.tickets.forEach(take);
      proposals.push(toProposal(balancedTeams({ ...lobby, teamSize: rules.teamSize }), region));
      break;
    }
  }
  return proposals;
}

function indexByRegion(candidates: readonly Candidate[]): ReadonlyMap<string, SkillIndexBySize> {
  const byRegion = new Map<string, Candidate[]>();
  for (const candidate of candidates)
    for (const region of candidate.regions) {
      const there = byRegion.get(region);
      if (there) there.push(candidate);
      else byRegion.set(region, [candidate]);
    }
  return new Map([...byRegion].map(([region, there]) => [region, indexBySize(there)]));
}

const indexBySize = (candidates: readonly Candidate[]): SkillIndexBySize =>
  new Map([...Map.groupBy(candidates, ({ size }) => size)].map(([size, same]) => [size, createSkillIndex(same)]));

function toProposal(teams: readonly Team[], region: string): Proposal {
  const seats = teams.flatMap((team, index) => team.map((candidate) => ({ candidate, team: index + 1 })));
  return {
    seats: seats
      .sort((a, b) => a.candidate.queueOrder - b.candidate.queueOrder)
      .map(({ candidate, team }) => ({ ticketId: candidate.ticket.ticketId, team })),
    ...(region !== anywhere && { region }),
  };
}
