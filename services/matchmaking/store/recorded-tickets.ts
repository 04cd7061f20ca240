/** Ended tickets, page by page, for `todoke match export`. */
import { type Queryable, utcText } from "@todoke/kernel/db";
import type { Attributes, ExpiryReason } from "../queue/ticket.ts";
import type { EndStatus } from "./ends.ts";

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
  /** The last ticket ID of the previous page; empty for the first page. */
  readonly after: string;
  readonly limit: number;
}

// In primary key order, so that no page needs a sort; the simulation sorts by time.
const pageSql = `
select ticket_id, user_id, party_size, attributes,
       ${utcText("joined_at")} as joined_at, ${utcText("ended_at")} as ended_at, status, reason
  from ticket_ends
 where mode = $1 and ended_at > now() - $2::float8 * interval '1 hour' and ticket_id > $3
   and reason is distinct from 'lost' -- their data is gone
 order by ticket_id
 limit $4`;

export async function selectRecordedTickets(
  db: Queryable,
  { mode, withinHours, after, limit }: RecordedPage,
): Promise<readonly RecordedTicket[]> {
  const { rows } = await db.query<RecordedTicket>(pageSql, [mode, withinHours, after, limit]);
  return rows;
}
