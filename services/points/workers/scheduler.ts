/**
 * Dispatches due reservations, and turns occurrences of schedules into reservations: none before its time by the database's
 * clock, the oldest first, from any number of processes.
 *
 * It runs every ten seconds, when the next reservation is due, and when an earlier one is created; a lost wake-up costs
 * latency only. At most `inFlightMax` reservations are PROCESSING at once, so a million that are due together drain at the
 * worker's pace. A reservation that is PROCESSING for an hour is dispatched again, which is idempotent.
 */
import type { Db } from "@todoke/kernel/db";
import { type Loop, startLoop, type Wakeups } from "@todoke/kernel/worker";
import { type DispatchSummary, dispatchReservations } from "../commands/dispatch-reservations.ts";
import { runDueSchedule } from "../commands/run-due-schedule.ts";
import { selectNextDueMs } from "../store/dispatch-reservations.ts";

export interface SchedulerOptions {
  readonly db: Db;
  readonly wakeups: Pick<Wakeups, "on">;
  /** Signalled when a reservation is created that is due soon. */
  readonly topic: string;
  readonly intervalMs?: number;
  readonly inFlightMax?: number;
  readonly batchMax?: number;
  /** Called after a commit that wrote events. */
  readonly onSent: () => void;
  readonly onError: (error: unknown) => void;
}

export interface Scheduler extends AsyncDisposable {
  /** Dispatches what is due, up to the limits, and returns how many reservations that were. */
  runOnce(): Promise<number>;
  start(): void;
}

const defaultIntervalMs = 10_000;

// Reservations that become due within this pause share a batch: a thousand a second are forty batches, not a thousand. No
// wake-up shortens it, so that many of them do not cause as many runs.
const pauseMs = 25;
// While `inFlightMax` is reached, or another scheduler has the lock. Each run counts the reservations in flight: a run after
// every few grants would cost the database more than the grants.
const blockedMs = 200;
const backoff = { baseMs: 100, capMs: 5_000 };

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { db, wakeups, topic, intervalMs = defaultIntervalMs, onSent, onError } = options;
  const { inFlightMax = 20_000, batchMax = 500 } = options;
  let loop: Loop | undefined;

  /** A schedule that failed is skipped for an interval, so that it neither blocks the others nor floods the log. */
  const failedAt = new Map<string, number>();
  const onFailed = (scheduleId: string) => void failedAt.set(scheduleId, performance.now());
  const recentlyFailed = () => [...failedAt].flatMap(([id, at]) => (performance.now() - at < intervalMs ? [id] : []));

  async function dispatch(): Promise<DispatchSummary> {
    const summary = await dispatchReservations(db, { inFlightMax, batchMax });
    if (summary.sent > 0) onSent();
    return summary;
  }

  async function runUntilDrained(stopping?: AbortSignal): Promise<DispatchSummary> {
    for (let sent = 0; ; ) {
      // Alternating, so that a schedule with a million users does not delay due reservations.
      const hasRun = await runDueSchedule(db, { onError, onFailed, skip: recentlyFailed() });
      const batch = await dispatch();
      sent += batch.sent;
      const isDrained = !hasRun && batch.sent < batchMax;
      if (isDrained || stopping?.aborted) return { sent, isBlocked: batch.isBlocked };
    }
  }

  async function runAndPlan(stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    const { isBlocked } = await runUntilDrained(stopping);
    if (isBlocked) nextIn(blockedMs);
    else nextIn(Math.min(intervalMs, (await selectNextDueMs(db, recentlyFailed())) ?? intervalMs));
  }

  const task = "dispatching due reservations";
  return {
    runOnce: async () => (await runUntilDrained()).sent,
    start() {
      loop ??= startLoop(runAndPlan, { intervalMs, task, onError, backoff, pauseMs: () => pauseMs, wakeups, topic });
    },
    async [Symbol.asyncDispose]() {
      await loop?.[Symbol.asyncDispose]();
    },
  };
}
