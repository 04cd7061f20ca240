/**
 * Turns an occurrence of a schedule into reservations, a batch of users at a time. The cursor commits with the batch, so the
 * next run continues there, also after a crash. An occurrence that has begun is always completed.
 */
import { type Db, isUnavailable, type Tx, transaction } from "@todoke/kernel/db";
import { nextOccurrence } from "../schedules/catch-up.ts";
import { type Cron, parseCron } from "../schedules/cron.ts";
import {
  type DueSchedule,
  insertOccurrence,
  lockDueSchedule,
  updateProgress,
  updateScheduleStatus,
} from "../store/change-schedules.ts";

// The same as a batch request: a transaction of some ten milliseconds.
const defaultBatchMax = 1_000;

export interface RunOptions {
  readonly onError: (error: unknown) => void;
  /** Schedules to skip. */
  readonly skip?: readonly string[];
  /** Called with a schedule whose run failed and was rolled back. */
  readonly onFailed?: (scheduleId: string) => void;
  /** Users in one batch. */
  readonly batchMax?: number;
}

/** Runs one batch of a due schedule. Returns false if none is due. */
export async function runDueSchedule(db: Db, options: RunOptions): Promise<boolean> {
  const { onError, onFailed, skip = [], batchMax = defaultBatchMax } = options;
  let schedule: DueSchedule | undefined;
  try {
    return await transaction(db, async (tx) => {
      schedule = await lockDueSchedule(tx, skip);
      if (!schedule) return false;
      const cron = tryParseCron(schedule, onError);
      if (cron) await runBatch(tx, { schedule, cron, batchMax });
      // This build cannot parse what an earlier one accepted. Paused, the schedule does not block the others.
      else await updateScheduleStatus(tx, schedule.scheduleId, "PAUSED");
      return true;
    });
  } catch (cause) {
    if (!schedule || isUnavailable(cause)) throw cause;
    onError(new Error(`schedule ${schedule.scheduleId} failed`, { cause }));
    onFailed?.(schedule.scheduleId);
    return true;
  }
}

function tryParseCron({ scheduleId, cron, timeZone }: DueSchedule, onError: RunOptions["onError"]): Cron | undefined {
  try {
    return parseCron(cron, timeZone);
  } catch (cause) {
    onError(new Error(`schedule ${scheduleId} cannot be parsed and is paused`, { cause }));
    return undefined;
  }
}

interface Batch {
  readonly schedule: DueSchedule;
  readonly cron: Cron;
  readonly batchMax: number;
}

async function runBatch(tx: Tx, { schedule, cron, batchMax }: Batch): Promise<void> {
  const { scheduleId, cursor } = schedule;
  const occurrence = cursor === null ? nextOccurrence(schedule, cron) : Temporal.Instant.from(schedule.nextRunAt);
  if (!occurrence || !isDue(occurrence, schedule)) {
    return updateProgress(tx, { scheduleId, nextRunAt: occurrence?.toString() ?? null, cursor: null });
  }
  const occurrenceAt = occurrence.toString();
  const { users, last } = await insertOccurrence(tx, {
    scheduleId,
    occurrenceAt,
    after: cursor ?? "",
    limit: batchMax,
  });
  const progress =
    users === batchMax
      ? { nextRunAt: occurrenceAt, cursor: last }
      : { nextRunAt: cron.next(occurrence)?.toString() ?? null, cursor: null };
  await updateProgress(tx, { scheduleId, ...progress });
}

const isDue = (occurrence: Temporal.Instant, { now }: DueSchedule): boolean =>
  Temporal.Instant.compare(occurrence, Temporal.Instant.from(now)) <= 0;
