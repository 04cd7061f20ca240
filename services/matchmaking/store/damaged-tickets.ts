/** Reads of quarantined queue entries. */
import { type Db, utcText } from "@todoke/kernel/db";

export interface DamagedTicket {
  readonly ticket_id: string;
  readonly mode: string;
  readonly raw: string;
  readonly why: string;
  readonly ended_at: string;
}

/** Newest first. */
export async function selectDamagedTickets(db: Db, limit: number): Promise<DamagedTicket[]> {
  const { rows } = await db.query<DamagedTicket>({
    name: "select damaged tickets",
    text: `select ticket_id, mode, raw, why, ${utcText("ended_at")} as ended_at
             from damaged_tickets order by ended_at desc limit $1`,
    values: [limit],
  });
  return rows;
}
