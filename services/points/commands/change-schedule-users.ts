/**
 * Says who gets a recurring grant. Said twice it is the same, so it takes no key. Whoever is added gets the occurrences from then
 * on, and one under way if it has not passed them; whoever is removed keeps what is booked for them.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { scheduleEnded, scheduleNotFound } from "../reservations/problems.ts";
import { selectSchedule } from "../reservations/store/schedule-reads.ts";
import { deleteScheduleUsers, insertScheduleUsers } from "../reservations/store/schedules.ts";

interface ScheduleUsersChange {
  readonly scheduleId: string;
  readonly userIds: readonly string[];
  readonly act: "add" | "remove";
}

/** For how many it made a difference. */
export type ChangeScheduleUsers = (change: ScheduleUsersChange) => Promise<number>;

export const changeScheduleUsers =
  (db: Db): ChangeScheduleUsers =>
  ({ scheduleId, userIds, act }) =>
    transaction(db, async (tx) => {
      const schedule = await selectSchedule(tx, scheduleId);
      if (!schedule) throw scheduleNotFound(`there is no recurring grant ${scheduleId}`);
      if (act === "remove") return deleteScheduleUsers(tx, scheduleId, userIds);
      if (schedule.status === "ENDED") throw scheduleEnded("nobody can get it any more; make a new one");
      return insertScheduleUsers(tx, scheduleId, userIds);
    });
