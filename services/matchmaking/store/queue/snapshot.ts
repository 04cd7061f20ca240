/**
 * Reads the waiting tickets of a mode, up to a limit. If there are more, half of the result are the oldest tickets, a
 * quarter the newest, and a quarter joined around a random time in between. So every ticket is seen soon, and the oldest
 * always are.
 */
import type { Queryable } from "@todoke/kernel/db";
import { type TicketRow, ticketColumns } from "./ticket-rows.ts";
import { isWaitingInOrder } from "./tickets.ts";

const waiting = `select ${ticketColumns} from tickets t where t.mode = $1 and ${isWaitingInOrder}`;

export const oldestSql = `${waiting} order by t.joined_at, t.position limit $2`;
export const newestSql = `${waiting} order by t.joined_at desc, t.position desc limit $2`;

const at = (ms: string) => `to_timestamp(${ms}::float8 / 1000)`;
const between = `${waiting}
  and (t.joined_at, t.position) > (${at("$3")}, $4::bigint) and (t.joined_at, t.position) < (${at("$5")}, $6::bigint)`;

/** Tickets after the time in $7; if those are too few, tickets before it too. */
export const betweenSql = `
select * from (
  (${between} and t.joined_at >= ${at("$7")} order by t.joined_at, t.position limit $2)
  union all
  (${between} and t.joined_at < ${at("$7")} order by t.joined_at desc, t.position desc limit $2)) around
limit $2`;

const nowSql = `select (extract(epoch from date_trunc('milliseconds', statement_timestamp())) * 1000)::float8 as now`;

export interface SnapshotRows {
  /** In join order. */
  readonly rows: readonly TicketRow[];
  readonly now: number;
}

export async function selectSnapshot(db: Queryable, mode: string, ticketsMax: number): Promise<SnapshotRows> {
  const rows = await selectWaiting(db, mode, ticketsMax);
  const now = rows[0]?.now ?? (await db.query<{ now: number }>(nowSql)).rows[0]?.now ?? 0;
  return { rows, now };
}

async function selectWaiting(db: Queryable, mode: string, ticketsMax: number): Promise<readonly TicketRow[]> {
  const read = async (name: string, text: string, ...values: unknown[]) =>
    (await db.query<TicketRow>({ name, text, values: [mode, ...values] })).rows;
  const all = await read("oldest tickets", oldestSql, ticketsMax + 1);
  if (all.length <= ticketsMax) return all;
  const quarter = Math.floor(ticketsMax / 4);
  const oldest = all.slice(0, ticketsMax - 2 * quarter);
  const newest = await read("newest tickets", newestSql, quarter);
  const [from, to] = [oldest.at(-1), newest.at(-1)];
  if (!from || !to) return oldest;
  const moment = from.joined_at + Math.random() * (to.joined_at - from.joined_at);
  const edges = [from.joined_at, from.position, to.joined_at, to.position];
  const middle = await read("tickets between", betweenSql, quarter, ...edges, moment);
  // Tickets that leave between the reads can make two reads overlap, so duplicates are removed by ID.
  const byId = new Map([...oldest, ...middle, ...newest].map((row) => [row.ticket_id, row]));
  return [...byId.values()].sort(byJoinOrder);
}

const byJoinOrder = (a: TicketRow, b: TicketRow): number =>
  a.joined_at - b.joined_at || (a.position < b.position ? -1 : 1);
