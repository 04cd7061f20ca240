/** Reads of schedules and their users. */
import { omitNulls, type Queryable, rfc3339Sql } from "@todoke/kernel/db";
import type { CatchUp } from "../schedules/catch-up.ts";
import type { ScheduleStatus } from "./change-schedules.ts";

/** Null columns are left out. */
export interface ScheduleView {
  readonly schedule_id: string;
  readonly name: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly point_amount: bigint;
  readonly lot_ttl_seconds?: bigint;
  readonly reason?: string;
  readonly catch_up: CatchUp;
  readonly status: ScheduleStatus;
  readonly next_run_at?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

const columns = `schedule_id, name, cron, time_zone, point_amount, lot_ttl_seconds, reason, catch_up, status,
  ${rfc3339Sql("next_run_at")} as next_run_at, ${rfc3339Sql("created_at")} as created_at, ${rfc3339Sql("updated_at")} as updated_at`;

export async function selectSchedule(db: Queryable, scheduleId: string): Promise<ScheduleView | undefined> {
  const { rows } = await db.query<ScheduleView>({
    name: "select schedule",
    text: `select ${columns} from point_schedules where schedule_id = $1`,
    values: [scheduleId],
  });
  return rows[0] && omitNulls(rows[0]);
}

export interface SchedulesPage {
  readonly status?: ScheduleStatus | undefined;
  /** The last id of the previous page. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function selectSchedules(db: Queryable, page: SchedulesPage): Promise<ScheduleView[]> {
  const { rows } = await db.query<ScheduleView>({
    name: "select schedules",
    text: `select ${columns} from point_schedules
            where schedule_id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
              and ($2::text is null or status = $2)
            order by schedule_id desc limit $3`,
    values: [page.before ?? null, page.status ?? null, page.limit],
  });
  return rows.map((row) => omitNulls(row));
}

export interface ScheduleUsersPage {
  readonly scheduleId: string;
  /** The last user of the previous page. */
  readonly after: string;
  readonly limit: number;
}

export async function selectScheduleUsers(db: Queryable, page: ScheduleUsersPage): Promise<{ user_id: string }[]> {
  const { rows } = await db.query<{ user_id: string }>({
    name: "select schedule users",
    text: `select user_id from point_schedule_users where schedule_id = $1 and user_id > $2 order by user_id limit $3`,
    values: [page.scheduleId, page.after, page.limit],
  });
  return rows;
}

/** The database's clock, RFC 3339. */
export async function selectNow(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ now: string }>({
    name: "select now",
    text: `select ${rfc3339Sql("now()")} as now`,
  });
  return rows[0]?.now ?? "";
}
