/** Stops a schedule until it is resumed. */
import type { Db } from "@todoke/kernel/db";
import { type ChangeSchedule, changeScheduleStatus } from "./change-schedule-status.ts";

export function pauseSchedule(db: Db, onChanged: () => void): ChangeSchedule {
  return changeScheduleStatus(db, "PAUSED", onChanged);
}
