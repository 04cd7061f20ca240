/** Resumes a schedule. Missed occurrences are caught up according to `catch_up`. */
import type { Db } from "@todoke/kernel/db";
import { type ChangeSchedule, changeScheduleStatus } from "./change-schedule-status.ts";

export function resumeSchedule(db: Db, onChanged: () => void): ChangeSchedule {
  return changeScheduleStatus(db, "ACTIVE", onChanged);
}
