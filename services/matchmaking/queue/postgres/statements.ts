/** All the SQL on `tickets` but the join. The database's clock decides what is over. */
import type { Db, Queryable, Tx } from "@todoke/kernel/db";
import type { UsersInModes } from "../index.ts";
import { columns, type TicketRow } from "./rows.ts";

const waits = "t.alive_until > statement_timestamp()";

/**
 * The same for reads in the order of joining, in words that the index of ends has no answer to: when the planner believes
 * that next to nobody is left, it would read all who wait from there, and sort them.
 */
export const waitsInOrder = "t.alive_until - statement_timestamp() > interval '0'";

/**
 * Whoever matches in a mode does so alone until the transaction ends: those who waited longest are the same for everybody.
 * A statement of its own, so that the next one sees what whoever was before has committed.
 */
export async function lockMode(tx: Tx, mode: string): Promise<void> {
  const text = `select pg_advisory_xact_lock(hashtextextended('matches of ' || current_schema() || ' ' || $1, 0))`;
  await tx.query({ name: "lock mode", text, values: [mode] });
}

/**
 * Not "skip locked": one whose client is heard of at this moment keeps its place. Parties are passed over: rules of another
 * day let them in, and they end by their time.
 */
export const longestText = `
select ${columns} from tickets t
 where t.mode = $1 and ${waitsInOrder} and t.party_size = 1
 order by t.joined_at, t.position limit $2 for update`;

/** Single players who have waited longest, in order, held until the transaction ends. */
export async function lockLongest(tx: Tx, mode: string, limit: number): Promise<TicketRow[]> {
  return (await tx.query<TicketRow>({ name: "lock longest", text: longestText, values: [mode, limit] })).rows;
}

/** In the order of their ids, so that two who want the same wait for each other and never deadlock. */
export const lockText = `
select ${columns} from tickets t where t.ticket_id = any($1::text[]) order by t.ticket_id for update`;

/** Those of the tickets that are there, whether their time is up or not, held until the transaction ends. */
export async function lockTickets(tx: Tx, ticketIds: readonly string[]): Promise<TicketRow[]> {
  return (await tx.query<TicketRow>({ name: "lock tickets", text: lockText, values: [ticketIds] })).rows;
}

/** In the same order. Found by the user, in words that no other index has an answer to: neither to the mode nor to the order. */
export const lockOfUsersText = `
select ${columns} from tickets t
 where t.user_id = any($1::text[]) and t.mode || '' = any($2::text[])
 order by t.ticket_id || '' for update`;

export async function lockTicketsOf(tx: Tx, { userIds, modes }: UsersInModes): Promise<TicketRow[]> {
  const values = [userIds, modes];
  return (await tx.query<TicketRow>({ name: "lock tickets of users", text: lockOfUsersText, values })).rows;
}

/** Rows that somebody holds at this moment are left to them; what is still over afterwards is found by the next sweep. */
export const overText = `
select ${columns} from tickets t
 where t.mode = $1 and t.alive_until <= statement_timestamp()
 order by t.alive_until limit $2 for update skip locked`;

export async function lockOver(tx: Tx, mode: string, limit: number): Promise<TicketRow[]> {
  return (await tx.query<TicketRow>({ name: "lock over", text: overText, values: [mode, limit] })).rows;
}

export const deleteText = `delete from tickets where ticket_id = any($1::text[])`;

export async function deleteTickets(tx: Tx, ticketIds: readonly string[]): Promise<void> {
  await tx.query({ name: "delete tickets", text: deleteText, values: [ticketIds] });
}

export async function selectTicket(db: Queryable, ticketId: string): Promise<TicketRow | undefined> {
  const text = `select ${columns} from tickets t where t.ticket_id = $1`;
  return (await db.query<TicketRow>({ name: "select ticket", text, values: [ticketId] })).rows[0];
}

export const beatText = `
update tickets t
   set alive_until = least(t.expires_at, coalesce(
         date_trunc('milliseconds', statement_timestamp()) + $2::float8 * interval '1 millisecond', t.expires_at))
 where t.ticket_id = $1 and ${waits}
returning ${columns}`;

/** Only one that still waits: what is over is over. */
export async function updateAlive(
  db: Queryable,
  ticketId: string,
  forMs: number | null,
): Promise<TicketRow | undefined> {
  return (await db.query<TicketRow>({ name: "update alive", text: beatText, values: [ticketId, forMs] })).rows[0];
}

export const standingText = `
select (select count(*) from tickets t where t.mode = $1 and ${waits})::int as waiting,
       (select extract(epoch from statement_timestamp() - t.joined_at) * 1000 from tickets t
         where t.mode = $1 and ${waitsInOrder} order by t.joined_at, t.position limit 1)::float8 as "oldestMs",
       (select extract(epoch from t.alive_until - statement_timestamp()) * 1000 from tickets t
         where t.mode = $1 and ${waits} order by t.alive_until limit 1)::float8 as "nextEndMs",
       exists (select from tickets t where t.mode = $1 and not ${waits}) as "isAnyOver"`;

export interface Standing {
  readonly waiting: number;
  readonly oldestMs: number | null;
  readonly nextEndMs: number | null;
  readonly isAnyOver: boolean;
}

export async function selectStanding(db: Queryable, mode: string): Promise<Standing> {
  const { rows } = await db.query<Standing>({ name: "select standing", text: standingText, values: [mode] });
  return rows[0] as Standing;
}

const holdText = `
insert into forming_turns as f (mode, holder, held_until)
values ($1, $2, statement_timestamp() + $3::float8 * interval '1 millisecond')
on conflict (mode) do update set holder = excluded.holder, held_until = excluded.held_until
 where f.held_until <= statement_timestamp() or f.holder = excluded.holder`;

/** True when it is the holder's turn. */
export async function takeTurn(db: Db, turn: { mode: string; holder: string; forMs: number }): Promise<boolean> {
  const values = [turn.mode, turn.holder, turn.forMs];
  return (await db.query({ name: "take turn", text: holdText, values })).rowCount === 1;
}
