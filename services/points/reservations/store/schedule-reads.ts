/** Reads of recurring grants, and who gets them. */
import { type Queryable, utcText } from "@todoke/kernel/db";
import { setFields } from "../../store/set-fields.ts";
import type { CatchUp, ScheduleStatus } from "./schedules.ts";

/** Fields that are not set are left out. */
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
  ${utcText("next_run_at")} as next_run_at, ${utcText("created_at")} as created_at, ${utcText("updated_at")} as updated_at`;

export async function selectSchedule(db: Queryable, scheduleId: string): Promise<ScheduleView | undefined> {
  const { rows } = await db.query<ScheduleView>({
    name: "select schedule",
    text: `select ${columns} from point_schedules where schedule_id = $1`,
    values: [scheduleId],
  });
  return rows[0] && setFields(rows[0]);
}

export interface SchedulesPage {
  readonly status?: ScheduleStatus | undefined;
  /** The last id of the page before. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/** The newest first. */
export async function selectSchedules(db: Queryable, page: SchedulesPage): Promise<ScheduleView[]> {
  const { rows } = await db.query<ScheduleView>({
    name: "select schedules",
    text: `select ${columns} from point_schedules
            where schedule_id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
              and ($2::text is null or status = $2)
            order by schedule_id desc limit $3`,
    values: [page.before ?? null, page.status ?? null, page.limit],
  });
  return rows.map(setFields);
}

export interface ScheduleUsersPage {
  readonly scheduleId: string;
  /** The last user of the page before. */
  readonly after: string;
  readonly limit: number;
}

/** In the order in which their reservations are made. */
export async function selectScheduleUsers(db: Queryable, page: ScheduleUsersPage): Promise<{ user_id: string }[]> {
  const { rows } = await db.query<{ user_id: string }>({
    name: "select schedule users",
    text: `select user_id from point_schedule_users where schedule_id = $1 and user_id > $2 order by user_id limit $3`,
    values: [page.scheduleId, page.after, page.limit],
  });
  return rows;
}

/** RFC 3339: the database's clock, by which a schedule's first occurrence is looked for. */
export async function selectNow(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ now: string }>({ name: "select now", text: `select ${utcText("now()")} as now` });
  return rows[0]?.now ?? "";
}
