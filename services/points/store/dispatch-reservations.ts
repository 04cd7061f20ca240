/**
 * Statements of the scheduler. Only the database's clock decides what is due.
 *
 * `< 'infinity'` is the condition of the partial indexes (migrations/0002), so that the planner uses them. Locked rows are
 * updated by ctid alone: with more conditions the planner could choose another index and read all of it.
 */
import { type Delays, delayCountMax, lateMs } from "@todoke/kernel/claims";
import type { Queryable, Tx } from "@todoke/kernel/db";
import { insertReservationDueSql } from "../events/reservation-events.ts";

/** Returns false if another scheduler has the lock: two that count free slots at once would dispatch too many. */
export async function trySchedulerLock(tx: Tx): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>(
    `select pg_try_advisory_xact_lock(hashtextextended('points scheduler ' || current_schema(), 0)) as locked`,
  );
  return rows[0]?.locked === true;
}

export const dispatchDueSql = `
with free as materialized (
  select greatest(0, $1::int - count(*))::int as slots
    from (select from point_reservations where status = 'PROCESSING' and sent_at < 'infinity' limit $1) p
),
due as materialized (
  select ctid as row from point_reservations
   where status = 'PENDING' and execute_at <= now() and execute_at < 'infinity'
   order by execute_at, id limit (select least(slots, $2::int) from free) for update skip locked
),
dispatched as (
  update point_reservations set status = 'PROCESSING', sent_at = now(), attempt_count = 1, updated_at = now()
   where ctid = any(array(select row from due))
  returning id, user_id, point_amount, execute_at, sent_at
),
insert_events as (${insertReservationDueSql("dispatched")})
select (select count(*) from dispatched)::int as dispatched, slots from free`;

export interface DispatchLimits {
  /** How many reservations may be PROCESSING at once. */
  readonly inFlightMax: number;
  readonly batchMax: number;
}

export interface Dispatched {
  readonly dispatched: number;
  /** How many reservations could have been dispatched without exceeding `inFlightMax`. */
  readonly slots: number;
}

/** Makes due reservations PROCESSING, oldest first, and emits their PointReservationDue. */
export async function dispatchDue(tx: Tx, { inFlightMax, batchMax }: DispatchLimits): Promise<Dispatched> {
  const { rows } = await tx.query<Dispatched>({
    name: "dispatch due",
    text: dispatchDueSql,
    values: [inFlightMax, batchMax],
  });
  return rows[0] as Dispatched;
}

/** An event that is still in the outbox stays as it is. One that retention has deleted is inserted again. */
export const redispatchOverdueSql = `
with overdue as materialized (
  select ctid as row from point_reservations
   where status = 'PROCESSING' and sent_at < now() - $1::float8 * interval '1 millisecond' and sent_at < 'infinity'
   order by sent_at limit $2 for update skip locked
),
redispatched as (
  update point_reservations set sent_at = now(), attempt_count = attempt_count + 1, updated_at = now()
   where ctid = any(array(select row from overdue))
  returning id, user_id, point_amount, execute_at, sent_at
),
insert_events as (${insertReservationDueSql("redispatched", { republish: true })})
select count(*)::int as redispatched from redispatched`;

/** Publishes the event again of reservations that have been PROCESSING for too long. Returns how many. */
export async function redispatchOverdue(
  tx: Tx,
  { overdueMs, limit }: { overdueMs: number; limit: number },
): Promise<number> {
  const { rows } = await tx.query<{ redispatched: number }>({
    name: "redispatch overdue",
    text: redispatchOverdueSql,
    values: [overdueMs, limit],
  });
  return rows[0]?.redispatched ?? 0;
}

export interface NextDue {
  /** The wait until the next reservation is due; `Infinity` if there is none. */
  readonly reservationMs: number;
  readonly scheduleMs: number;
}

// Seconds are subtracted, not times: an infinite interval exists from PostgreSQL 17 on.
const waitSql = (at: string) =>
  `((extract(epoch from coalesce((${at}), 'infinity')) - extract(epoch from clock_timestamp())) * 1000)::float8`;

export async function selectNextDue(db: Queryable, skipSchedules: readonly string[]): Promise<NextDue> {
  const { rows } = await db.query<NextDue>({
    name: "next due",
    text: `select ${waitSql(`select execute_at from point_reservations
                       where status = 'PENDING' and execute_at < 'infinity' order by execute_at limit 1`)} as "reservationMs",
                  ${waitSql(`select next_run_at from point_schedules
                       where status = 'ACTIVE' and schedule_id <> all($1::uuid[]) order by next_run_at limit 1`)} as "scheduleMs"`,
    values: [skipSchedules],
  });
  return rows[0] as NextDue;
}

export interface Backlog {
  /** PENDING although due. */
  readonly due: number;
  readonly processing: number;
  /** Age of the oldest. */
  readonly oldestMs: number;
}

// Bounded, so that reading a large backlog adds no load.
const countMax = 100_000;

/** Reservations that are due and not granted. */
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

/** Reservations that are due and not granted, and recurring grants whose time has passed. */
export async function readReservationDelays(db: Queryable): Promise<readonly Delays[]> {
  const { due, processing, oldestMs } = await selectBacklog(db);
  const { rows } = await db.query<Pick<Delays, "late" | "oldestMs">>(
    `select count(*)::int as late, coalesce(extract(epoch from now() - min(next_run_at)) * 1000, 0)::float8 as "oldestMs"
       from (select next_run_at from point_schedules
              where status = 'ACTIVE' and next_run_at <= now() - ${lateMs} * interval '1 millisecond'
              order by next_run_at limit ${delayCountMax}) s`,
  );
  const isLate = oldestMs > lateMs;
  const none = { late: 0, oldestMs: 0, failing: 0, lastError: null, parked: 0 };
  return [
    { ...none, table: "point_reservations", ...(isLate && { late: due + processing, oldestMs }) },
    { ...none, table: "point_schedules", ...rows[0] },
  ];
}
