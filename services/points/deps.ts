/** All that the routes reach outside themselves. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { ChangePoints } from "./commands/change-points.ts";
import type { ChangeSchedule } from "./commands/change-schedule.ts";
import type { ChangeScheduleUsers } from "./commands/change-schedule-users.ts";
import type { CreateSchedule } from "./commands/create-schedule.ts";
import type { Cancel, Reserve } from "./reservations/index.ts";

export interface Deps {
  /** For reads. */
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly changePoints: ChangePoints;
  readonly reserve: Reserve;
  readonly cancel: Cancel;
  readonly createSchedule: CreateSchedule;
  readonly changeSchedule: ChangeSchedule;
  readonly changeScheduleUsers: ChangeScheduleUsers;
}
