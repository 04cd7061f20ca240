/**
 * Turns the occurrences of recurring grants into reservations, a batch of users at a time. How far it has come is in the
 * schedule's row and commits with the batch, so that whoever comes next goes on there, after a crash too.
 *
 * What nobody was there for (a downtime, a pause) is caught up as the schedule says: `all` of it, one occurrence after the
 * other; only the `latest`; or `none`, which passes over what is more than five minutes late. One that has begun is ended.
 */
import { type Db, isUnavailable, type Tx, transaction } from "@todoke/kernel/db";
import { type Cron, parseCron } from "./cron.ts";
import {
  type CatchUp,
  type DueSchedule,
  insertOccurrence,
  lockDueSchedule,
  updateProgress,
  updateScheduleStatus,
} from "./store/schedules.ts";

/** Later than this, an occurrence was missed. */
const missedAfter = Temporal.Duration.from({ minutes: 5 });

// As many as a bulk request: a transaction of some ten milliseconds.
const usersMax = 1_000;

export interface StepOptions {
  readonly onError: (error: unknown) => void;
  /** Schedules that are left alone this time. */
  readonly passOver?: readonly string[];
  /** Hears of a schedule whose step failed, and left nothing behind: nobody else should wait for it. */
  readonly onFailed?: (scheduleId: string) => void;
  /** Users in one batch. */
  readonly limit?: number;
}

/** One step for a schedule that is due; they take turns. False: none is due. */
export async function stepSchedules(db: Db, options: StepOptions): Promise<boolean> {
  const { onError, onFailed, passOver = [], limit = usersMax } = options;
  let schedule: DueSchedule | undefined;
  try {
    return await transaction(db, async (tx) => {
      schedule = await lockDueSchedule(tx, passOver);
      if (!schedule) return false;
      const cron = readable(schedule, onError);
      if (cron) await step(tx, { schedule, cron, limit });
      // Whatever it was when it was made, this build cannot read it: nobody else waits for it.
      else await updateScheduleStatus(tx, schedule.scheduleId, "PAUSED");
      return true;
    });
  } catch (cause) {
    if (!schedule || isUnavailable(cause)) throw cause;
    onError(new Error(`schedule ${schedule.scheduleId} could not go on`, { cause }));
    onFailed?.(schedule.scheduleId);
    return true;
  }
}

function readable({ scheduleId, cron, timeZone }: DueSchedule, onError: StepOptions["onError"]): Cron | undefined {
  try {
    return parseCron(cron, timeZone);
  } catch (cause) {
    onError(new Error(`schedule ${scheduleId} cannot be read, and is paused`, { cause }));
    return undefined;
  }
}

interface Step {
  readonly schedule: DueSchedule;
  readonly cron: Cron;
  readonly limit: number;
}

async function step(tx: Tx, { schedule, cron, limit }: Step): Promise<void> {
  const { scheduleId, cursor } = schedule;
  const run = cursor === null ? toRun(schedule, cron) : Temporal.Instant.from(schedule.nextRunAt);
  if (!run || !isDue(run, schedule)) {
    return updateProgress(tx, { scheduleId, nextRunAt: run?.toString() ?? null, cursor: null });
  }
  const occurrenceAt = run.toString();
  const { users, last } = await insertOccurrence(tx, { scheduleId, occurrenceAt, after: cursor ?? "", limit });
  const progress =
    users === limit
      ? { nextRunAt: occurrenceAt, cursor: last }
      : { nextRunAt: cron.next(run)?.toString() ?? null, cursor: null };
  await updateProgress(tx, { scheduleId, ...progress });
}

const isDue = (run: Temporal.Instant, { now }: DueSchedule): boolean =>
  Temporal.Instant.compare(run, Temporal.Instant.from(now)) <= 0;

interface Missed {
  readonly nextRunAt: string;
  readonly now: string;
  readonly catchUp: CatchUp;
}

/** The occurrence to be carried out, or, when none is, the next to come; undefined when there is none any more. */
export function toRun({ nextRunAt, now, catchUp }: Missed, cron: Cron): Temporal.Instant | undefined {
  const [next, present] = [Temporal.Instant.from(nextRunAt), Temporal.Instant.from(now)];
  if (catchUp === "latest") return latest(cron, next, present);
  const missed = present.subtract(missedAfter);
  if (catchUp === "all" || Temporal.Instant.compare(next, missed) >= 0) return next;
  return cron.next(missed);
}

/** Looks back twice as far each time until it finds one: what was missed may be a year of minutes. */
function latest(cron: Cron, next: Temporal.Instant, present: Temporal.Instant): Temporal.Instant {
  for (let minutes = 1; ; minutes *= 2) {
    const from = present.subtract({ minutes });
    if (Temporal.Instant.compare(from, next) <= 0) return lastUpTo(cron, next, present);
    const found = cron.next(from);
    if (found && Temporal.Instant.compare(found, present) <= 0) return lastUpTo(cron, found, present);
  }
}

function lastUpTo(cron: Cron, first: Temporal.Instant, present: Temporal.Instant): Temporal.Instant {
  let last = first;
  for (;;) {
    const after = cron.next(last);
    if (!after || Temporal.Instant.compare(after, present) > 0) return last;
    last = after;
  }
}
