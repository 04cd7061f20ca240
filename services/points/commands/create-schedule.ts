/** Makes a recurring grant. It is ACTIVE at once, first comes round after now by the database's clock, and has no users yet. */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { exactly } from "../ledger/answer.ts";
import { type Cron, CronFault, parseCron } from "../reservations/index.ts";
import { scheduleNameTaken, scheduleUnreadable } from "../reservations/problems.ts";
import { type ScheduleView, selectNow, selectSchedule } from "../reservations/store/schedule-reads.ts";
import { insertSchedule, type NewSchedule } from "../reservations/store/schedules.ts";

type WantedSchedule = Omit<NewSchedule, "scheduleId" | "nextRunAt">;
export type CreateSchedule = (key: IdempotencyKey, wanted: WantedSchedule) => Promise<Answer>;

/** `onScheduled` is called after the commit: the scheduler looks what is due next. */
export const createSchedule =
  (db: Db, onScheduled: () => void): CreateSchedule =>
  async (key, wanted) => {
    const cron = readable(wanted);
    const answer = await once(db, key, async (tx) => {
      const next = cron.next(Temporal.Instant.from(await selectNow(tx)));
      if (!next) throw unreadable("body.cron", "does not come round before the year 10000");
      const scheduleId = randomUUIDv7();
      if (!(await insertSchedule(tx, { ...wanted, scheduleId, nextRunAt: next.toString() })))
        throw scheduleNameTaken(`there is a recurring grant "${wanted.name}" already`);
      return { status: 201, body: exactView((await selectSchedule(tx, scheduleId)) as ScheduleView) };
    });
    onScheduled();
    return answer;
  };

/** With the zone UTC first, which every build knows: what fails then is the cron. */
function readable({ cron, timeZone }: WantedSchedule): Cron {
  const parsed = (zone: string, field: string): Cron => {
    try {
      return parseCron(cron, zone);
    } catch (fault) {
      throw fault instanceof CronFault ? unreadable(field, fault.message) : fault;
    }
  };
  parsed("UTC", "body.cron");
  return parsed(timeZone, "body.time_zone");
}

const unreadable = (field: string, detail: string) =>
  scheduleUnreadable(`${field}: ${detail}`, { fields: [{ field, detail }] });

const exactView = (schedule: ScheduleView) =>
  Object.fromEntries(
    Object.entries(schedule).map(([name, value]) => [name, typeof value === "bigint" ? exactly(value) : value]),
  );
