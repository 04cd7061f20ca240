/**
 * Who waits, as far as asked for: of more, half are those who have waited longest, a quarter those who came last, and a
 * quarter those who came around some moment between, another every time. So nobody is out of sight for long, and whoever
 * has waited longest never is.
 */
import type { Queryable } from "@todoke/kernel/db";
import { columns, type TicketRow } from "./rows.ts";
import { waitsInOrder } from "./statements.ts";

const waiting = `select ${columns} from tickets t where t.mode = $1 and ${waitsInOrder}`;

export const oldestText = `${waiting} order by t.joined_at, t.position limit $2`;
export const newestText = `${waiting} order by t.joined_at desc, t.position desc limit $2`;

const at = (ms: string) => `to_timestamp(${ms}::float8 / 1000)`;
const between = `${waiting}
  and (t.joined_at, t.position) > (${at("$3")}, $4::bigint) and (t.joined_at, t.position) < (${at("$5")}, $6::bigint)`;

/** From the moment on; where that is too few, from before it. */
export const betweenText = `
select * from (
  (${between} and t.joined_at >= ${at("$7")} order by t.joined_at, t.position limit $2)
  union all
  (${between} and t.joined_at < ${at("$7")} order by t.joined_at desc, t.position desc limit $2)) around
limit $2`;

const nowText = `select (extract(epoch from date_trunc('milliseconds', statement_timestamp())) * 1000)::float8 as now`;

export interface Rows {
  /** In the order of their joining. */
  readonly rows: readonly TicketRow[];
  readonly now: number;
}

export async function selectSnapshot(db: Queryable, mode: string, ticketsMax: number): Promise<Rows> {
  const rows = await selectWaiting(db, mode, ticketsMax);
  const now = rows[0]?.now ?? (await db.query<{ now: number }>(nowText)).rows[0]?.now ?? 0;
  return { rows, now };
}

async function selectWaiting(db: Queryable, mode: string, ticketsMax: number): Promise<readonly TicketRow[]> {
  const read = async (name: string, text: string, ...values: unknown[]) =>
    (await db.query<TicketRow>({ name, text, values: [mode, ...values] })).rows;
  const all = await read("oldest tickets", oldestText, ticketsMax + 1);
  if (all.length <= ticketsMax) return all;
  const quarter = Math.floor(ticketsMax / 4);
  const oldest = all.slice(0, ticketsMax - 2 * quarter);
  const newest = await read("newest tickets", newestText, quarter);
  const [from, to] = [oldest.at(-1), newest.at(-1)];
  if (!from || !to) return oldest;
  const moment = from.joined_at + Math.random() * (to.joined_at - from.joined_at);
  const edges = [from.joined_at, from.position, to.joined_at, to.position];
  const some = await read("tickets between", betweenText, quarter, ...edges, moment);
  // By their ids: whoever is in two of the reads, because others left meanwhile, counts once.
  const each = new Map([...oldest, ...some, ...newest].map((row) => [row.ticket_id, row]));
  return [...each.values()].sort(byJoining);
}

const byJoining = (a: TicketRow, b: TicketRow): number =>
  a.joined_at - b.joined_at || (a.position < b.position ? -1 : 1);
