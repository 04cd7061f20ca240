/**
 * Pauses, resumes and ends a recurring grant. Said twice it is the same, so it takes no key. What has been booked stays booked;
 * what a pause has missed is caught up as the schedule says; an ended one stays ended.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { scheduleEnded, scheduleNotFound } from "../reservations/problems.ts";
import { type ScheduleView, selectSchedule } from "../reservations/store/schedule-reads.ts";
import { type ScheduleStatus, updateScheduleStatus } from "../reservations/store/schedules.ts";

export type ChangeSchedule = (scheduleId: string, status: ScheduleStatus) => Promise<ScheduleView>;

/** `onScheduled` is called after the commit: the scheduler looks what is due next. */
export const changeSchedule =
  (db: Db, onScheduled: () => void): ChangeSchedule =>
  async (scheduleId, status) => {
    const schedule = await transaction(db, async (tx) => {
      await updateScheduleStatus(tx, scheduleId, status);
      return selectSchedule(tx, scheduleId);
    });
    if (!schedule) throw scheduleNotFound(`there is no recurring grant ${scheduleId}`);
    if (schedule.status !== status) throw scheduleEnded("it stays so; make a new one");
    onScheduled();
    return schedule;
  };
