/** Creates a schedule: ACTIVE, without users, and with its first occurrence after now by the database's clock. */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { exactInteger } from "../ledger/response.ts";
import { scheduleNameTaken, scheduleUnreadable } from "../problems.ts";
import { type Cron, CronError, parseCron } from "../schedules/cron.ts";
import { insertSchedule, type NewSchedule } from "../store/change-schedules.ts";
import { type ScheduleView, selectNow, selectSchedule } from "../store/schedules.ts";

type WantedSchedule = Omit<NewSchedule, "scheduleId" | "nextRunAt">;
export type CreateSchedule = (key: IdempotencyKey, wanted: WantedSchedule) => Promise<Answer>;

/** `onChanged` is called after the commit: wakes the scheduler. */
export function createSchedule(db: Db, onChanged: () => void): CreateSchedule {
  return async (key, wanted) => {
    const cron = validCron(wanted);
    const answer = await once(db, key, async (tx) => {
      const next = cron.next(Temporal.Instant.from(await selectNow(tx)));
      if (!next) throw unreadable("body.cron", "has no occurrence before the year 10000");
      const scheduleId = randomUUIDv7();
      if (!(await insertSchedule(tx, { ...wanted, scheduleId, nextRunAt: next.toString() })))
        throw scheduleNameTaken(`There is already a schedule "${wanted.name}".`);
      return { status: 201, body: toBody((await selectSchedule(tx, scheduleId)) as ScheduleView) };
    });
    onChanged();
    return answer;
  };
}

/** Parses in UTC first, which is always a valid zone: an error then is one of the cron expression. */
function validCron({ cron, timeZone }: WantedSchedule): Cron {
  const parse = (zone: string, field: string): Cron => {
    try {
      return parseCron(cron, zone);
    } catch (error) {
      throw error instanceof CronError ? unreadable(field, error.message) : error;
    }
  };
  parse("UTC", "body.cron");
  return parse(timeZone, "body.time_zone");
}

const unreadable = (field: string, detail: string) =>
  scheduleUnreadable(`${field}: ${detail}`, { fields: [{ field, detail }] });

const toBody = (schedule: ScheduleView) =>
  Object.fromEntries(
    Object.entries(schedule).map(([name, value]) => [name, typeof value === "bigint" ? exactInteger(value) : value]),
  );
