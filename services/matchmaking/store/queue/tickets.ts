/** The statements on `tickets`, except the join. The database's clock decides which tickets are expired. */
import type { Db, Queryable, Tx } from "@todoke/kernel/db";
import { type TicketRow, ticketColumns } from "./ticket-rows.ts";

const read = async (db: Queryable, name: string, text: string, values: readonly unknown[]): Promise<TicketRow[]> =>
  (await db.query<TicketRow>({ name, text, values: [...values] })).rows;

const isWaiting = "t.alive_until > statement_timestamp()";

/**
 * The same condition for reads in join order, written so that the index on `alive_until` cannot serve it: with statistics
 * that show almost no ticket left, the planner would read all waiting tickets from that index and sort them.
 */
export const isWaitingInOrder = "t.alive_until - statement_timestamp() > interval '0'";

/**
 * Only one transaction at a time matches the oldest tickets of a mode, because all of them would pick the same ones. The
 * lock is a statement of its own, so that the next statement sees what the previous holder has committed.
 */
export async function lockMode(tx: Tx, mode: string): Promise<void> {
  const text = `select pg_advisory_xact_lock(hashtextextended('matches of ' || current_schema() || ' ' || $1, 0))`;
  await tx.query({ name: "lock mode", text, values: [mode] });
}

/**
 * Not `skip locked`: a ticket whose heartbeat is being written keeps its position. Parties are skipped: earlier rules let
 * them in, and they stay until they expire.
 */
export const lockOldestSql = `
select ${ticketColumns} from tickets t
 where t.mode = $1 and ${isWaitingInOrder} and t.party_size = 1
 order by t.joined_at, t.position limit $2 for update`;

/** Locks the oldest waiting tickets of single players and returns them in join order. */
export const lockOldest = (tx: Tx, mode: string, limit: number) =>
  read(tx, "lock oldest", lockOldestSql, [mode, limit]);

/** In ID order, so that two transactions with the same tickets cannot deadlock. */
export const lockTicketsSql = `
select ${ticketColumns} from tickets t where t.ticket_id = any($1::text[]) order by t.ticket_id for update`;

/** Locks those of the tickets that exist, expired or not. */
export const lockTickets = (tx: Tx, ticketIds: readonly string[]) =>
  read(tx, "lock tickets", lockTicketsSql, [ticketIds]);

/** In ID order too. `|| ''` keeps the planner from the indexes on mode and ticket_id: rows are found by user. */
export const lockUserTicketsSql = `
select ${ticketColumns} from tickets t
 where t.user_id = any($1::text[]) and t.mode || '' = any($2::text[])
 order by t.ticket_id || '' for update`;

interface UserTickets {
  readonly userIds: readonly string[];
  readonly modes: readonly string[];
}

export const lockUserTickets = (tx: Tx, { userIds, modes }: UserTickets) =>
  read(tx, "lock user tickets", lockUserTicketsSql, [userIds, modes]);

/** Skips rows that another transaction holds. If they are still expired afterwards, the next sweep finds them. */
export const lockExpiredSql = `
select ${ticketColumns} from tickets t
 where t.mode = $1 and t.alive_until <= statement_timestamp()
 order by t.alive_until limit $2 for update skip locked`;

export const lockExpired = (tx: Tx, mode: string, limit: number) =>
  read(tx, "lock expired", lockExpiredSql, [mode, limit]);

export const deleteTicketsSql = `delete from tickets where ticket_id = any($1::text[])`;

export async function deleteTickets(tx: Tx, ticketIds: readonly string[]): Promise<void> {
  await tx.query({ name: "delete tickets", text: deleteTicketsSql, values: [ticketIds] });
}

const selectTicketSql = `select ${ticketColumns} from tickets t where t.ticket_id = $1`;

/** Returns one row, or none. */
export const selectTicket = (db: Queryable, ticketId: string) => read(db, "select ticket", selectTicketSql, [ticketId]);

// Rules have at most 50 modes, and a user has one ticket in each.
const userTicketsMax = 100;

/** `|| ''` keeps the planner from the indexes that begin with the mode. */
export const userTicketsSql = `
select found.* from unnest($1::text[]) as one(user_id)
 cross join lateral (select ${ticketColumns} from tickets t where t.user_id = one.user_id
                      order by t.mode || '' limit ${userTicketsMax}) found`;

/** The tickets of all these users. */
export const selectUserTickets = (db: Queryable, userIds: readonly string[]) =>
  read(db, "user tickets", userTicketsSql, [userIds]);

// `is true` keeps the planner from the index by end, which PostgreSQL 15 would walk on an empty table.
export const heartbeatSql = `
update tickets t
   set alive_until = least(t.expires_at, coalesce(
         date_trunc('milliseconds', statement_timestamp()) + $2::float8 * interval '1 millisecond', t.expires_at))
 where t.ticket_id = $1 and (${isWaiting}) is true
returning ${ticketColumns}`;

/** Returns undefined if the ticket is expired or unknown. `forMs` null: it lives until `expires_at`. */
export const updateHeartbeat = async (
  db: Queryable,
  ticketId: string,
  forMs: number | null,
): Promise<TicketRow | undefined> => (await read(db, "heartbeat", heartbeatSql, [ticketId, forMs]))[0];

export const queueStatusSql = `
select (select count(*) from tickets t where t.mode = $1 and ${isWaiting})::int as waiting,
       (select extract(epoch from statement_timestamp() - t.joined_at) * 1000 from tickets t
         where t.mode = $1 and ${isWaitingInOrder} order by t.joined_at, t.position limit 1)::float8 as "oldestMs",
       (select extract(epoch from t.alive_until - statement_timestamp()) * 1000 from tickets t
         where t.mode = $1 and ${isWaiting} order by t.alive_until limit 1)::float8 as "nextEndMs",
       exists (select from tickets t where t.mode = $1 and not ${isWaiting}) as "anyExpired"`;

export interface QueueStatusRow {
  readonly waiting: number;
  readonly oldestMs: number | null;
  readonly nextEndMs: number | null;
  readonly anyExpired: boolean;
}

export async function selectQueueStatus(db: Queryable, mode: string): Promise<QueueStatusRow> {
  const { rows } = await db.query<QueueStatusRow>({ name: "queue status", text: queueStatusSql, values: [mode] });
  return rows[0] as QueueStatusRow;
}

const acquireFormingLeaseSql = `
insert into forming_turns as f (mode, holder, held_until)
values ($1, $2, statement_timestamp() + $3::float8 * interval '1 millisecond')
on conflict (mode) do update set holder = excluded.holder, held_until = excluded.held_until
 where f.held_until <= statement_timestamp() or f.holder = excluded.holder`;

/** Returns whether the holder has the lease now. */
export async function acquireFormingLease(
  db: Db,
  { mode, holder, leaseMs }: { mode: string; holder: string; leaseMs: number },
): Promise<boolean> {
  const values = [mode, holder, leaseMs];
  return (await db.query({ name: "forming lease", text: acquireFormingLeaseSql, values })).rowCount === 1;
}
