/** Dispatches due reservations to the worker, one batch in one transaction. */
import { type Db, transaction } from "@todoke/kernel/db";
import {
  type DispatchLimits,
  dispatchDue,
  redispatchOverdue,
  trySchedulerLock,
} from "../store/dispatch-reservations.ts";

/** A reservation that has been PROCESSING for longer is dispatched again. */
const overdueMs = 3_600_000;

export interface DispatchSummary {
  /** How many events were written. */
  readonly sent: number;
  /** Another scheduler has the lock, or `inFlightMax` is reached. */
  readonly isBlocked: boolean;
}

export async function dispatchReservations(db: Db, limits: DispatchLimits): Promise<DispatchSummary> {
  const { dispatched, redispatched, slots } = await transaction(db, async (tx) => {
    if (!(await trySchedulerLock(tx))) return { dispatched: 0, redispatched: 0, slots: 0 };
    const redispatched = await redispatchOverdue(tx, { overdueMs, limit: limits.batchMax });
    return { redispatched, ...(await dispatchDue(tx, limits)) };
  });
  return { sent: dispatched + redispatched, isBlocked: dispatched === slots };
}

/** Dispatches again what has been PROCESSING for too long, as every dispatch does too. Returns how many. */
export const redispatchReservations = (db: Db, limit: number): Promise<number> =>
  transaction(db, (tx) => redispatchOverdue(tx, { overdueMs, limit }));
