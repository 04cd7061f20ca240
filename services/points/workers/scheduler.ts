/**
 * Takes due reservations, and turns occurrences of schedules into reservations: none before its time by the database's clock,
 * the oldest first, from any number of processes.
 *
 * It runs every ten seconds, when the next reservation is due, and when an earlier one is created; a lost wake-up costs
 * latency only. Reservations are dispatched to the worker, at most `inFlightMax` at once, so a million that are due together
 * drain at its pace. A reservation that is PROCESSING for an hour is dispatched again, which is idempotent.
 *
 * In a process that is the worker too, on a bus in the same database, reservations are granted here instead: from PENDING to
 * DONE in one transaction (docs/adr/0105). The first batch after a start or a failure is dispatched all the same, because the
 * worker counts attempts. A reservation that is refused, or kills its process, then ends as FAILED and does not block the others.
 */
import type { Db } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import { type Loop, runBatches, startLoop, type Wakeups } from "@todoke/kernel/worker";
import {
  type DispatchSummary,
  dispatchReservations,
  redispatchReservations,
} from "../commands/dispatch-reservations.ts";
import { grantDueReservations } from "../commands/grant-reservations.ts";
import { runDueSchedule } from "../commands/run-due-schedule.ts";
import { selectNextDue } from "../store/dispatch-reservations.ts";

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
  /** If set, reservations are granted here. Called after a commit that granted some, with their delays. */
  readonly onGranted?: ((delaysMs: readonly number[]) => void) | undefined;
  readonly onError: (error: unknown) => void;
}

export interface Scheduler extends AsyncDisposable {
  /** Dispatches due reservations, up to the limits, and returns their number. */
  runOnce(): Promise<number>;
  start(): void;
}

const defaultIntervalMs = 10_000;

// Reservations that become due within this pause share a batch: a thousand a second are forty batches, not a thousand. No
// wake-up shortens it, so that many of them do not cause as many runs. A grant here is one commit and not five, so its pause
// is shorter.
const pauseMs = { dispatching: 25, granting: 5 };
// While `inFlightMax` is reached, or another scheduler has the lock. Each run counts the reservations in flight: a run after
// every few grants would cost the database more than the grants.
const blockedMs = 200;
const backoff = { baseMs: 100, capMs: 5_000 };

// While one transaction waits for the database, another prepares its changes. A third would only compete with commands.
const grantsAtOnce = 2;
/** Then due schedules have a turn. */
const grantBatchesMax = 10;

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { db, wakeups, topic, intervalMs = defaultIntervalMs, onSent, onGranted, onError } = options;
  const { inFlightMax = 20_000, batchMax = 500 } = options;
  let loop: Loop | undefined;
  /** Whether the next batch is granted here. */
  let isGranting = false;
  let redispatchedAt = performance.now();

  /** A schedule that failed is skipped for an interval, so that it neither blocks the others nor floods the log. */
  const failedAt = new Map<string, number>();
  const onFailed = (scheduleId: string) => void failedAt.set(scheduleId, performance.now());
  const recentlyFailed = () => [...failedAt].flatMap(([id, at]) => (performance.now() - at < intervalMs ? [id] : []));

  async function dispatch(): Promise<DispatchSummary> {
    const summary = await dispatchReservations(db, {
      inFlightMax,
      batchMax: batchMax * (onGranted ? grantsAtOnce : 1),
    });
    if (summary.sent > 0) onSent();
    isGranting = onGranted !== undefined && !summary.isBlocked;
    return summary;
  }

  async function grantBatch(): Promise<number> {
    const delaysMs = await grantDueReservations(db, batchMax);
    if (delaysMs.length === 0) return 0;
    onSent();
    onGranted?.(delaysMs);
    return delaysMs.length;
  }

  /** One batch, and if it was full, more of them until one is not. */
  async function grant(stopping?: AbortSignal): Promise<number> {
    const first = await grantBatch();
    if (first < batchMax || stopping?.aborted) return first;
    const limits = { batchMax, batchesMax: grantBatchesMax, ...(stopping && { stopping }) };
    const runs = Array.from({ length: grantsAtOnce }, () => runBatches(grantBatch, limits));
    const ended = await Promise.allSettled(runs);
    return ended.reduce((sum, run) => sum + resultOf(run), first);
  }

  /** Returns undefined if the next batch must be dispatched. */
  async function tryGrant(stopping?: AbortSignal): Promise<number | undefined> {
    try {
      const granted = await grant(stopping);
      if (performance.now() - redispatchedAt < intervalMs) return granted;
      redispatchedAt = performance.now();
      return granted + (await redispatch());
    } catch (error) {
      isGranting = false;
      // The worker reports reservations that it refuses.
      if (!(error instanceof Problem)) throw error;
      return undefined;
    }
  }

  async function redispatch(): Promise<number> {
    const sent = await redispatchReservations(db, batchMax);
    if (sent > 0) onSent();
    return sent;
  }

  async function runBatch(stopping?: AbortSignal): Promise<DispatchSummary> {
    const granted = isGranting ? await tryGrant(stopping) : undefined;
    return granted === undefined ? await dispatch() : { sent: granted, isBlocked: false };
  }

  /** Returns the wait until the next reservation or schedule is due. */
  async function runUntilDrained(stopping?: AbortSignal): Promise<{ sent: number; waitMs: number }> {
    for (let sent = 0; ; ) {
      const batch = await runBatch(stopping);
      sent += batch.sent;
      const next = await selectNextDue(db, recentlyFailed());
      // Alternating, so that a schedule with a million users does not delay due reservations.
      const hasRun = next.scheduleMs <= 0 && (await runDueSchedule(db, { onError, onFailed, skip: recentlyFailed() }));
      const isDrained = !hasRun && batch.sent < batchMax;
      if (isDrained || stopping?.aborted)
        return { sent, waitMs: batch.isBlocked ? blockedMs : Math.min(next.reservationMs, next.scheduleMs) };
    }
  }

  async function runAndPlan(stopping: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    nextIn(Math.min(intervalMs, (await runUntilDrained(stopping)).waitMs));
  }

  const task = "granting due reservations";
  const pause = () => (isGranting ? pauseMs.granting : pauseMs.dispatching);
  return {
    runOnce: async () => (await runUntilDrained()).sent,
    start() {
      loop ??= startLoop(runAndPlan, { intervalMs, task, onError, backoff, pauseMs: pause, wakeups, topic });
    },
    async [Symbol.asyncDispose]() {
      await loop?.[Symbol.asyncDispose]();
    },
  };
}

function resultOf<T>(result: PromiseSettledResult<T>): T {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}
