/** Tickets that have ended, by the page: what `todoke match export` hands to a simulation. */
import { type Queryable, utcText } from "@todoke/kernel/db";
import type { Attributes, ExpiryReason } from "../tickets.ts";
import type { EndStatus } from "./end-rows.ts";

export interface RecordedTicket {
  readonly ticket_id: string;
  readonly user_id: string;
  readonly party_size: number;
  readonly attributes: Attributes;
  readonly joined_at: string;
  readonly ended_at: string;
  readonly status: EndStatus;
  readonly reason: ExpiryReason | null;
}

export interface RecordedPage {
  readonly mode: string;
  readonly withinHours: number;
  /** The ticket with which the page before ended; empty for the first. */
  readonly after: string;
  readonly limit: number;
}

// In the order of the primary key, so that every page is found without a sort; whoever replays them sorts by time.
const pageText = `
select ticket_id, user_id, party_size, attributes,
       ${utcText("joined_at")} as joined_at, ${utcText("ended_at")} as ended_at, status, reason
  from ticket_ends
 where mode = $1 and ended_at > now() - $2::float8 * interval '1 hour' and ticket_id > $3
   and reason is distinct from 'lost' -- of those nothing is known
 order by ticket_id
 limit $4`;

export async function selectRecordedTickets(
  db: Queryable,
  { mode, withinHours, after, limit }: RecordedPage,
): Promise<readonly RecordedTicket[]> {
  const { rows } = await db.query<RecordedTicket>(pageText, [mode, withinHours, after, limit]);
  return rows;
}
