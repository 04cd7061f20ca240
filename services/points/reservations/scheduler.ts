/**
 * Finds what is due and hands it to the worker, as long as the process runs: each reservation once, none before its time
 * by the database's clock, the longest due first.
 *
 * It looks every ten seconds, when the next thing comes due, and when somebody has booked something nearer; so a lost
 * wake-up costs latency only. It takes small batches, and no more than `inFlightMax` are PROCESSING at once: a million that
 * are due in one second drain at the worker's pace while everybody else is served. Any number of processes do this at once.
 * What the worker has not ended within an hour it is told again; being told twice changes nothing.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import { backoffMs, latch, type Wakeups } from "@todoke/kernel/worker";
import { stepSchedules } from "./occurrences.ts";
import { resendLate, selectNextDueMs, takeDue, takeTurn } from "./store/due.ts";

export interface SchedulerOptions {
  readonly db: Db;
  readonly wakeups: Pick<Wakeups, "on">;
  /** What is signalled when something is booked that is due soon. */
  readonly topic: string;
  readonly everyMs?: number;
  /** How many may be PROCESSING at once. */
  readonly inFlightMax?: number;
  readonly batchMax?: number;
  /** After this long without an end the worker is told again. */
  readonly lateMs?: number;
  /** Called after a commit that wrote events: the relay's wake-up. */
  readonly onSent: () => void;
  readonly onError: (error: unknown) => void;
}

export interface Scheduler extends AsyncDisposable {
  /** Hands over what is due, up to the bounds, and says how many that were. Tests call this and wait for no timer. */
  lookOnce(): Promise<number>;
  start(): void;
}

const hourMs = 3_600_000;
const usualEveryMs = 10_000;

// What comes due within this goes along with what is due now: a thousand a second are forty batches, not a thousand.
const restMs = 25;
// While the worker is busy with as many as may be, or another scheduler has its turn. To look for room is to count those
// that are under way: done for every few that the worker ends, it would take more of the database than the worker does.
const waitForRoomMs = 200;
const failureBackoff = { baseMs: 100, capMs: 5_000 };

export function scheduler(options: SchedulerOptions): Scheduler {
  const { db, wakeups, topic, everyMs = usualEveryMs, onSent, onError } = options;
  const { inFlightMax = 20_000, batchMax = 500, lateMs = hourMs } = options;
  const rung = latch();
  const stopped = latch();
  let stopping = false;
  let failures = 0;
  let running: Promise<void> | undefined;
  let unsubscribe: (() => void) | undefined;

  /** Schedules that failed are tried again when it is time to look anyway: neither the others nor the log suffer meanwhile. */
  const failedAt = new Map<string, number>();
  const onFailed = (scheduleId: string) => void failedAt.set(scheduleId, performance.now());
  const failedLately = () => [...failedAt].flatMap(([id, at]) => (performance.now() - at < everyMs ? [id] : []));

  /** One batch. Held up: it is not our turn, or all the room that there was is taken. */
  async function take(): Promise<{ sent: number; isHeldUp: boolean }> {
    const { taken, again, room } = await transaction(db, async (tx) => {
      if (!(await takeTurn(tx))) return { taken: 0, again: 0, room: 0 };
      const again = await resendLate(tx, { lateMs, limit: batchMax });
      return { again, ...(await takeDue(tx, { inFlightMax, batchMax })) };
    });
    const sent = taken + again;
    if (sent > 0) onSent();
    return { sent, isHeldUp: taken === room };
  }

  async function look(): Promise<{ sent: number; isHeldUp: boolean }> {
    for (let sent = 0; ; ) {
      // In turns: a schedule of a million users does not hold up what is due beside it.
      const hasStepped = await stepSchedules(db, { onError, onFailed, passOver: failedLately() });
      const taken = await take();
      sent += taken.sent;
      const isDrained = !hasStepped && taken.sent < batchMax;
      if (isDrained || stopping) return { sent, isHeldUp: taken.isHeldUp };
    }
  }

  /** Looks, and says how long to wait before the next look. */
  async function lookAndWait(): Promise<number> {
    try {
      const { isHeldUp } = await look();
      failures = 0;
      if (isHeldUp) return waitForRoomMs;
      return Math.min(everyMs, Math.max(0, (await selectNextDueMs(db, failedLately())) ?? everyMs));
    } catch (cause) {
      onError(new Error("looking for what is due failed", { cause }));
      return backoffMs(++failures, failureBackoff);
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      rung.close();
      const waitMs = await lookAndWait();
      // Not cut short by a wake-up, so that a storm of them does not become a storm of looks.
      await stopped.wait(failures > 0 ? waitMs : restMs);
      if (!stopping && waitMs > restMs) await rung.wait(waitMs - restMs);
    }
  }

  return {
    lookOnce: async () => (await look()).sent,
    start() {
      unsubscribe ??= wakeups.on(topic, rung.open);
      running ??= run();
    },
    async [Symbol.asyncDispose]() {
      stopping = true;
      unsubscribe?.();
      for (const each of [rung, stopped]) each.open();
      await running;
    },
  };
}
