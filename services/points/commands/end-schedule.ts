/** Ends a schedule permanently. */
import type { Db } from "@todoke/kernel/db";
import { type ChangeSchedule, changeScheduleStatus } from "./change-schedule-status.ts";

export function endSchedule(db: Db, onChanged: () => void): ChangeSchedule {
  return changeScheduleStatus(db, "ENDED", onChanged);
}
