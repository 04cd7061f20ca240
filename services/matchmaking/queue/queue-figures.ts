/**
 * Figures of a mode: its waiting tickets, and the waits of recently matched ones. They are read at most once a second per mode,
 * for any number of requests.
 */
import type { Db } from "@todoke/kernel/db";
import { selectWaits, type Waits } from "../store/ended-tickets.ts";
import type { TicketQueue } from "./index.ts";
import type { OpenTicket } from "./ticket.ts";

const cacheMs = 1_000;

export type QueueFigures = ReturnType<typeof createQueueFigures>;

export function createQueueFigures({ db, queue }: { readonly db: Db; readonly queue: Pick<TicketQueue, "status"> }) {
  const readWaits = cachePerMode((mode) => selectWaits(db, mode));
  return {
    readStatus: cachePerMode((mode) => queue.status(mode)),
    readWaits,
    /** The remaining wait in seconds; undefined if there are no figures. */
    estimateWait: async ({ mode, joinedAt }: OpenTicket) => remainingWait(await readWaits(mode), Date.now() - joinedAt),
  };
}

/** Assumes p50; for a ticket that has waited longer than that, the next percentile that it has not reached. */
function remainingWait(waits: Waits, waitedMs: number): number | undefined {
  const totalMs = percentiles(waits).find((ms) => ms > waitedMs);
  return totalMs === undefined ? undefined : toSeconds(totalMs - Math.max(0, waitedMs));
}

export const percentiles = ({ p50Ms, p90Ms, p99Ms }: Waits) => [p50Ms, p90Ms, p99Ms].filter((ms) => ms !== undefined);

export const toSeconds = (ms: number) => Math.round(ms) / 1_000;

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
