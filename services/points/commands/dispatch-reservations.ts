/** Dispatches due reservations to the worker, one batch in one transaction. */
import { type Db, transaction } from "@todoke/kernel/db";
import {
  type DispatchLimits,
  dispatchDue,
  redispatchOverdue,
  trySchedulerLock,
} from "../store/dispatch-reservations.ts";

export interface DispatchOptions extends DispatchLimits {
  /** A reservation that has been PROCESSING for longer is dispatched again. */
  readonly overdueMs: number;
}

export interface DispatchSummary {
  /** How many events were written. */
  readonly sent: number;
  /** Another scheduler has the lock, or `inFlightMax` is reached. */
  readonly isBlocked: boolean;
}

export async function dispatchReservations(db: Db, options: DispatchOptions): Promise<DispatchSummary> {
  const { overdueMs, batchMax } = options;
  const { dispatched, redispatched, slots } = await transaction(db, async (tx) => {
    if (!(await trySchedulerLock(tx))) return { dispatched: 0, redispatched: 0, slots: 0 };
    const redispatched = await redispatchOverdue(tx, { overdueMs, limit: batchMax });
    return { redispatched, ...(await dispatchDue(tx, options)) };
  });
  return { sent: dispatched + redispatched, isBlocked: dispatched === slots };
}
