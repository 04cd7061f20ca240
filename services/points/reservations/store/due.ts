/**
 * What the scheduler asks and writes. Only the database's clock says what is due. What is said of infinity is what the small
 * indexes say (migrations/0002): by them, and no other, are the rows found. Once locked, a row is met by where it lies and
 * by nothing besides: more conditions would let the planner look for it by another index, read from end to end.
 */
import type { Queryable, Tx } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { reservationEventSql } from "./events.ts";

/** False when another scheduler has its turn: two that count at once would together let too many through. */
export async function takeTurn(tx: Tx): Promise<boolean> {
  const { rows } = await tx.query<{ ours: boolean }>(
    `select pg_try_advisory_xact_lock(hashtextextended('points scheduler ' || current_schema(), 0)) as ours`,
  );
  return rows[0]?.ours === true;
}

/** An event of each row of `from`, under the reservation's own id: sent again, it is the same event. */
const dueEvents = (from: string, { republish = false } = {}) =>
  insertEventsSql({
    ...reservationEventSql,
    from: `${from} r order by r.execute_at, r.id`,
    subject: "points.reservations",
    eventId: "id",
    eventType: "'PointReservationDue'",
    version: "1",
    occurredAt: "sent_at",
    republish,
  });

export const takeText = `
with room as materialized (
  select greatest(0, $1::int - count(*))::int as room
    from (select from point_reservations where status = 'PROCESSING' and sent_at < 'infinity' limit $1) p
),
due as materialized (
  select ctid as row from point_reservations
   where status = 'PENDING' and execute_at <= now() and execute_at < 'infinity'
   order by execute_at, id limit (select least(room, $2::int) from room) for update skip locked
),
taken as (
  update point_reservations set status = 'PROCESSING', sent_at = now(), attempt_count = 1, updated_at = now()
   where ctid = any(array(select row from due))
  returning id, user_id, point_amount, execute_at, sent_at
),
insert_events as (${dueEvents("taken")})
select (select count(*) from taken)::int as taken, room from room`;

export interface Taken {
  readonly taken: number;
  /** How many more might have been under way before. */
  readonly room: number;
}

/** Takes up what is due, the longest due first: PROCESSING, and the worker is told, in one commit. */
export async function takeDue(tx: Tx, bounds: { inFlightMax: number; batchMax: number }): Promise<Taken> {
  const values = [bounds.inFlightMax, bounds.batchMax];
  const { rows } = await tx.query<Taken>({ name: "take due", text: takeText, values });
  return rows[0] as Taken;
}

/**
 * What was published and not heard of since is published again; what has not left yet goes when it goes. A row that was
 * removed since, as published ones are in time, is made anew.
 */
export const resendText = `
with late as materialized (
  select ctid as row from point_reservations
   where status = 'PROCESSING' and sent_at < now() - $1::float8 * interval '1 millisecond' and sent_at < 'infinity'
   order by sent_at limit $2 for update skip locked
),
again as (
  update point_reservations set sent_at = now(), attempt_count = attempt_count + 1, updated_at = now()
   where ctid = any(array(select row from late))
  returning id, user_id, point_amount, execute_at, sent_at
),
insert_events as (${dueEvents("again", { republish: true })})
select count(*)::int as again from again`;

/** Has the worker told again of what it should have ended long ago; returns how many that were. */
export async function resendLate(tx: Tx, { lateMs, limit }: { lateMs: number; limit: number }): Promise<number> {
  const { rows } = await tx.query<{ again: number }>({
    name: "resend late",
    text: resendText,
    values: [lateMs, limit],
  });
  return rows[0]?.again ?? 0;
}

/** How far off the next thing to do is, besides these schedules; undefined when nothing is to come. */
export async function selectNextDueMs(db: Queryable, passOver: readonly string[]): Promise<number | undefined> {
  const { rows } = await db.query<{ in_ms: number | null }>({
    name: "next due",
    text: `select (extract(epoch from least(
                     (select execute_at from point_reservations
                       where status = 'PENDING' and execute_at < 'infinity' order by execute_at limit 1),
                     (select next_run_at from point_schedules
                       where status = 'ACTIVE' and schedule_id <> all($1::uuid[]) order by next_run_at limit 1))
                   - clock_timestamp()) * 1000)::float8 as in_ms`,
    values: [passOver],
  });
  return rows[0]?.in_ms ?? undefined;
}

export interface Backlog {
  /** Still PENDING though their time has come. */
  readonly due: number;
  readonly processing: number;
  /** How long the one has been due that has been due longest. */
  readonly oldestMs: number;
}

// To look at a backlog must not become a part of it.
const countMax = 100_000;

/** What is due and not granted. */
export async function selectBacklog(db: Queryable): Promise<Backlog> {
  const { rows } = await db.query<Backlog>({
    name: "select reservation backlog",
    text: `select (select count(*) from (select from point_reservations
                     where status = 'PENDING' and execute_at <= now() and execute_at < 'infinity' limit ${countMax}) d)::int as due,
                  (select count(*) from (select from point_reservations
                     where status = 'PROCESSING' and sent_at < 'infinity' limit ${countMax}) p)::int as processing,
                  greatest(0, extract(epoch from now() - least(
                    (select greatest(execute_at, created_at) from point_reservations
                      where status = 'PENDING' and execute_at < 'infinity' order by execute_at limit 1),
                    (select sent_at from point_reservations
                      where status = 'PROCESSING' and sent_at < 'infinity' order by sent_at limit 1))) * 1000)::float8 as "oldestMs"`,
  });
  return rows[0] as Backlog;
}
