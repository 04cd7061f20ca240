/**
 * How a mode stands: who waits, and how long those waited who were matched lately.
 *
 * However many ask, each mode is looked at once a second; modes are few. What a single ticket may have to wait yet is told
 * from the same figures.
 */
import type { Db } from "@todoke/kernel/db";
import type { TicketQueue } from "../queue/index.ts";
import { selectWaits, type Waits } from "../store/ends.ts";
import type { OpenTicket } from "../tickets.ts";

export interface QueueStats {
  readonly mode: string;
  readonly waiting: number;
  readonly oldest_wait_seconds?: number;
  /** Of tickets matched within the last hour; none, if nobody was. */
  readonly time_to_match_seconds?: { readonly p50: number; readonly p90: number; readonly p99: number };
  readonly estimated_wait_seconds?: number;
}

const keptMs = 1_000;

export function openQueueStats({ db, queue }: { readonly db: Db; readonly queue: Pick<TicketQueue, "standing"> }) {
  const waitsOf = oncePerMode((mode) => selectWaits(db, mode));
  const standingOf = oncePerMode((mode) => queue.standing(mode));
  return {
    async showQueueStats(mode: string): Promise<QueueStats> {
      const [{ waiting, oldestMs }, waits] = await Promise.all([standingOf(mode), waitsOf(mode)]);
      const [p50, p90, p99] = rungsOf(waits).map(seconds);
      return {
        mode,
        waiting,
        ...(oldestMs !== undefined && { oldest_wait_seconds: seconds(oldestMs) }),
        ...(p50 !== undefined &&
          p90 !== undefined &&
          p99 !== undefined && { time_to_match_seconds: { p50, p90, p99 }, estimated_wait_seconds: p50 }),
      };
    },
    /** How long the ticket may have to wait yet, in seconds; undefined where nothing is known. */
    estimate: async ({ mode, joinedAt }: OpenTicket) => remaining(await waitsOf(mode), Date.now() - joinedAt),
  };
}

/** Half of all have waited no longer than p50; who has waited longer is told of those who waited longer still. */
function remaining(waits: Waits, waitedMs: number): number | undefined {
  const end = rungsOf(waits).find((ms) => ms > waitedMs);
  return end === undefined ? undefined : seconds(end - Math.max(0, waitedMs));
}

const rungsOf = ({ p50Ms, p90Ms, p99Ms }: Waits) => [p50Ms, p90Ms, p99Ms].filter((ms) => ms !== undefined);

const seconds = (ms: number) => Math.round(ms) / 1_000;

/** Whoever asks within a second of another gets the same answer; a failure is not kept. */
function oncePerMode<T>(read: (mode: string) => Promise<T>): (mode: string) => Promise<T> {
  const kept = new Map<string, { readonly value: Promise<T>; readonly at: number }>();
  return (mode) => {
    const known = kept.get(mode);
    if (known && performance.now() - known.at < keptMs) return known.value;
    const value = read(mode);
    kept.set(mode, { value, at: performance.now() });
    value.catch(() => kept.delete(mode));
    return value;
  };
}
