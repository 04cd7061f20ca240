/** Adds users to a schedule. They get the following occurrences, and one in progress if its cursor has not passed them. */
import { type Db, transaction } from "@todoke/kernel/db";
import { scheduleEnded, scheduleNotFound } from "../problems.ts";
import { insertScheduleUsers } from "../store/change-schedules.ts";
import { selectSchedule } from "../store/schedules.ts";

/** Returns the number of users for which it made a difference. */
export type ChangeScheduleUsers = (scheduleId: string, userIds: readonly string[]) => Promise<number>;

export function addScheduleUsers(db: Db): ChangeScheduleUsers {
  return (scheduleId, userIds) =>
    transaction(db, async (tx) => {
      const schedule = await selectSchedule(tx, scheduleId);
      if (!schedule) throw scheduleNotFound(`There is no schedule ${scheduleId}.`);
      if (schedule.status === "ENDED") throw scheduleEnded("An ended schedule cannot be changed. Create a new one.");
      return insertScheduleUsers(tx, scheduleId, userIds);
    });
}
