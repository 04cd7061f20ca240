/** Writes of schedules: by callers, and by the scheduler that turns occurrences into reservations. */
import { randomUUIDv7 } from "node:crypto";
import { type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import type { CatchUp } from "../schedules/catch-up.ts";

export type ScheduleStatus = "ACTIVE" | "PAUSED" | "ENDED";

export interface NewSchedule {
  readonly scheduleId: string;
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly amount: bigint;
  readonly lotTtlSeconds?: number | undefined;
  readonly reason?: string | undefined;
  readonly catchUp: CatchUp;
  /** RFC 3339. */
  readonly nextRunAt: string;
}

/** Returns false if the name is taken. */
export async function insertSchedule(db: Queryable, schedule: NewSchedule): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "insert schedule",
    text: `insert into point_schedules
             (schedule_id, name, cron, time_zone, point_amount, lot_ttl_seconds, reason, catch_up, next_run_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
           on conflict (name) do nothing`,
    values: [
      schedule.scheduleId,
      schedule.name,
      schedule.cron,
      schedule.timeZone,
      schedule.amount,
      schedule.lotTtlSeconds ?? null,
      schedule.reason ?? null,
      schedule.catchUp,
      schedule.nextRunAt,
    ],
  });
  return rowCount === 1;
}

/** Returns how many users were not in the schedule before. */
export async function insertScheduleUsers(
  db: Queryable,
  scheduleId: string,
  userIds: readonly string[],
): Promise<number> {
  const { rowCount } = await db.query({
    name: "insert schedule users",
    text: `insert into point_schedule_users (schedule_id, user_id)
           select $1, u.user_id from unnest($2::text[]) as u(user_id) order by u.user_id
           on conflict do nothing`,
    values: [scheduleId, userIds],
  });
  return rowCount ?? 0;
}

/** Returns how many users were removed. Their reservations stay. */
export async function deleteScheduleUsers(
  db: Queryable,
  scheduleId: string,
  userIds: readonly string[],
): Promise<number> {
  const { rowCount } = await db.query({
    name: "delete schedule users",
    text: `delete from point_schedule_users where schedule_id = $1 and user_id = any($2::text[])`,
    values: [scheduleId, userIds],
  });
  return rowCount ?? 0;
}

/** Returns false if the schedule does not exist or has ENDED. Its reservations stay. */
export async function updateScheduleStatus(
  db: Queryable,
  scheduleId: string,
  status: ScheduleStatus,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "update schedule status",
    text: `update point_schedules set status = $2, updated_at = now() where schedule_id = $1 and status <> 'ENDED'`,
    values: [scheduleId, status],
  });
  return rowCount === 1;
}

export interface DueSchedule {
  readonly scheduleId: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: CatchUp;
  readonly nextRunAt: string;
  /** The last user that has a reservation for the occurrence; null: the occurrence has not begun. */
  readonly cursor: string | null;
  /** The database's clock. */
  readonly now: string;
}

export const lockDueScheduleSql = `
select schedule_id as "scheduleId", cron, time_zone as "timeZone", catch_up as "catchUp",
       ${rfc3339Sql("next_run_at")} as "nextRunAt", run_cursor as cursor, ${rfc3339Sql("now()")} as now
  from point_schedules
 where status = 'ACTIVE' and next_run_at <= now() and schedule_id <> all($1::uuid[])
 order by updated_at limit 1 for update skip locked`;

/**
 * Locks a due schedule, unless another process has it. The least recently updated one is next, so that a schedule with a
 * year to catch up does not delay the others.
 */
export async function lockDueSchedule(tx: Tx, skip: readonly string[]): Promise<DueSchedule | undefined> {
  const { rows } = await tx.query<DueSchedule>({
    name: "lock due schedule",
    text: lockDueScheduleSql,
    values: [skip],
  });
  return rows[0];
}

export interface Occurrence {
  readonly scheduleId: string;
  readonly occurrenceAt: string;
  /** Users after this one. */
  readonly after: string;
  readonly limit: number;
}

// A longer interval overflows, and the result is limited to the year 9999 anyway.
const tenThousandYearsSeconds = 10_000 * 366 * 86_400;

/**
 * A reservation for each user after the cursor. The key is unique per schedule, occurrence and user, so a second run inserts
 * nothing. A user added during the run is included if the cursor has not passed them.
 */
export const insertOccurrenceSql = `
with users as materialized (
  select user_id, row_number() over (order by user_id) as ordinal
    from (select user_id from point_schedule_users where schedule_id = $1 and user_id > $3 order by user_id limit $4) u
),
insert_reservations as (
  insert into point_reservations (id, user_id, point_amount, execute_at, idempotency_key, request_hash,
                                  lot_expires_at, reason, schedule_id, occurrence_at)
  select ($5::uuid[])[u.ordinal], u.user_id, s.point_amount, $2::timestamptz, k.key, sha256(convert_to(k.key, 'utf8')),
         -- least() skips a null, so that without the case points without an end would end with the year 9999.
         case when s.lot_ttl_seconds is not null then
           least($2::timestamptz + least(s.lot_ttl_seconds, ${tenThousandYearsSeconds}) * interval '1 second',
                 '9999-12-31 23:59:59.999+00') end,
         s.reason, s.schedule_id, $2::timestamptz
    from users u
   cross join (select * from point_schedules where schedule_id = $1) s
   cross join lateral (select concat('schedule:', $1::uuid, ':', $6::text, ':', u.user_id) as key) k
   order by u.ordinal
  on conflict (idempotency_key) do nothing
)
select count(*)::int as users, max(user_id) as last from users`;

/** Returns the number of users, and the last of them. */
export async function insertOccurrence(
  tx: Tx,
  { scheduleId, occurrenceAt, after, limit }: Occurrence,
): Promise<{ users: number; last: string | null }> {
  const ids = Array.from({ length: limit }, () => randomUUIDv7());
  const { rows } = await tx.query<{ users: number; last: string | null }>({
    name: "insert occurrence",
    text: insertOccurrenceSql,
    values: [scheduleId, occurrenceAt, after, limit, ids, occurrenceAt],
  });
  return rows[0] as { users: number; last: string | null };
}

export interface ScheduleProgress {
  readonly scheduleId: string;
  /** The next occurrence, or the one in progress; null: there is none left, and the schedule is ENDED. */
  readonly nextRunAt: string | null;
  readonly cursor: string | null;
}

export async function updateProgress(tx: Tx, { scheduleId, nextRunAt, cursor }: ScheduleProgress): Promise<void> {
  await tx.query({
    name: "update schedule progress",
    text: `update point_schedules
              set next_run_at = $2, run_cursor = $3, updated_at = now(),
                  status = case when $2::timestamptz is null then 'ENDED' else status end
            where schedule_id = $1`,
    values: [scheduleId, nextRunAt, cursor],
  });
}
