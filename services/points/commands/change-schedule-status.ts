/** Pauses, resumes or ends a schedule. Its reservations stay, and an ENDED schedule stays ended. */
import { type Db, transaction } from "@todoke/kernel/db";
import { scheduleEnded, scheduleNotFound } from "../problems.ts";
import { type ScheduleStatus, updateScheduleStatus } from "../store/change-schedules.ts";
import { type ScheduleView, selectSchedule } from "../store/schedules.ts";

export type ChangeSchedule = (scheduleId: string) => Promise<ScheduleView>;

/** `onChanged` is called after the commit: wakes the scheduler. */
export function changeScheduleStatus(db: Db, status: ScheduleStatus, onChanged: () => void): ChangeSchedule {
  return async (scheduleId) => {
    const schedule = await transaction(db, async (tx) => {
      await updateScheduleStatus(tx, scheduleId, status);
      return selectSchedule(tx, scheduleId);
    });
    if (!schedule) throw scheduleNotFound(`There is no schedule ${scheduleId}.`);
    if (schedule.status !== status) throw scheduleEnded("An ended schedule cannot be changed. Create a new one.");
    onChanged();
    return schedule;
  };
}
