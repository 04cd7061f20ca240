/** Counts recorded ends. A duplicate was counted when it was recorded. */
import { countMatch, countTicket, observeTimeToMatch } from "../telemetry.ts";
import type { RecordedEnd } from "./record-ends.ts";
import type { TicketEnd } from "./ticket.ts";

export function countEnds(ends: readonly RecordedEnd[]): void {
  for (const { end, result } of ends) {
    if (result.kind === "recorded") countEnd(end);
    else if (result.kind === "void" && end.kind === "match") countMatch(end.match.mode, "void");
  }
}

function countEnd(end: TicketEnd): void {
  if (end.kind !== "match") {
    countTicket(end.kind === "damaged" ? end.mode : end.ticket.mode, end.kind);
    return;
  }
  const { mode, matchedAt, seats } = end.match;
  countMatch(mode, "made");
  for (const { ticket } of seats) observeTimeToMatch(mode, matchedAt - ticket.joinedAt);
}
