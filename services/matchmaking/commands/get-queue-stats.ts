/**
 * Figures of a mode: waiting tickets, and the wait of recently matched ones. They are read at most once a second per mode,
 * for any number of requests. The wait of a single ticket is estimated from the same figures.
 */
import type { Db } from "@todoke/kernel/db";
import type { TicketQueue } from "../queue/index.ts";
import { selectWaits, type Waits } from "../store/ended-tickets.ts";
import type { OpenTicket } from "../tickets/ticket.ts";

const cacheMs = 1_000;

export function createQueueStats({ db, queue }: { readonly db: Db; readonly queue: Pick<TicketQueue, "status"> }) {
  const readWaits = cachePerMode((mode) => selectWaits(db, mode));
  const readStatus = cachePerMode((mode) => queue.status(mode));
  return {
    async getQueueStats(mode: string) {
      const [{ waiting, oldestMs }, waits] = await Promise.all([readStatus(mode), readWaits(mode)]);
      const [p50, p90, p99] = percentiles(waits).map(toSeconds);
      return {
        mode,
        waiting,
        ...(oldestMs !== undefined && { oldest_wait_seconds: toSeconds(oldestMs) }),
        ...(p50 !== undefined &&
          p90 !== undefined &&
          p99 !== undefined && { time_to_match_seconds: { p50, p90, p99 }, estimated_wait_seconds: p50 }),
      };
    },
    /** The remaining wait in seconds; undefined if there are no figures. */
    estimateWait: async ({ mode, joinedAt }: OpenTicket) => remainingWait(await readWaits(mode), Date.now() - joinedAt),
  };
}

/** Assumes p50; for a ticket that has waited longer than that, the next percentile that it has not reached. */
function remainingWait(waits: Waits, waitedMs: number): number | undefined {
  const totalMs = percentiles(waits).find((ms) => ms > waitedMs);
  return totalMs === undefined ? undefined : toSeconds(totalMs - Math.max(0, waitedMs));
}

const percentiles = ({ p50Ms, p90Ms, p99Ms }: Waits) => [p50Ms, p90Ms, p99Ms].filter((ms) => ms !== undefined);

const toSeconds = (ms: number) => Math.round(ms) / 1_000;

/** A failure is not cached. */
function cachePerMode<T>(read: (mode: string) => Promise<T>): (mode: string) => Promise<T> {
  const cache = new Map<string, { readonly value: Promise<T>; readonly at: number }>();
  return (mode) => {
    const cached = cache.get(mode);
    if (cached && performance.now() - cached.at < cacheMs) return cached.value;
    const value = read(mode);
    cache.set(mode, { value, at: performance.now() });
    value.catch(() => cache.delete(mode));
    return value;
  };
}
