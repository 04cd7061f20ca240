/** Removes users from a schedule. Their reservations stay. */
import { type Db, transaction } from "@todoke/kernel/db";
import { scheduleNotFound } from "../problems.ts";
import { deleteScheduleUsers } from "../store/change-schedules.ts";
import { selectSchedule } from "../store/schedules.ts";
import type { ChangeScheduleUsers } from "./add-schedule-users.ts";

export function removeScheduleUsers(db: Db): ChangeScheduleUsers {
  return (scheduleId, userIds) =>
    transaction(db, async (tx) => {
      if (!(await selectSchedule(tx, scheduleId))) throw scheduleNotFound(`There is no schedule ${scheduleId}.`);
      return deleteScheduleUsers(tx, scheduleId, userIds);
    });
}
