/** Builds `MatchMade`: one event per match. */
import type { NewEvent } from "@todoke/kernel/outbox";
import type { Match } from "../queue/ticket.ts";
import { newEvent } from "./new-event.ts";

export function matchMade({ matchId, mode, region, matchedAt, seats }: Match): NewEvent {
  const players = seats.map(({ ticket, team }) => ({
    user_id: ticket.userId,
    ticket_id: ticket.ticketId,
    team,
    party_size: ticket.partySize,
  }));
  const fields = { match_id: matchId, mode, players, ...(region !== undefined && { region }) };
  return newEvent("MatchMade", { aggregateKey: matchId, at: matchedAt, fields });
}
