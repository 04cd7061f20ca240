/**
 * Claims the rows of one worker. A worker that has drained its table claims recently due rows only, which is cheap, and
 * everything that is due from time to time.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Claimed } from "../claims/index.ts";
import { observeDuration } from "../telemetry/index.ts";
import type { WorkerOptions, WorkerSettings } from "./index.ts";

/** A row whose transaction was open for longer than this when it committed waits for the next full claim. */
const commitDelayMs = 2_000;

export interface Claimer<Row> {
  claim(limit: number, options?: { readonly full?: boolean }): Promise<Claimed<Row>[]>;
}

export function createClaimer<Row extends object>(
  { name, db, claims, queue }: Pick<WorkerOptions<Row>, "name" | "db" | "claims" | "queue">,
  { leaseMs, pollMs }: WorkerSettings,
): Claimer<Row> {
  const id = `${name}@${hostname()}:${process.pid}:${randomBytes(3).toString("hex")}`;
  /** When the last full claim ran, and when a claim last returned fewer rows than its limit. */
  let fullClaimAt = Number.NEGATIVE_INFINITY;
  let drainedAt = Number.NEGATIVE_INFINITY;
  let fullClaimTookMs = 0;
  // A full claim that walks over millions of dead index entries takes seconds. It gets a tenth of the time, but runs at
  // least ten times in a lease.
  const fullClaimIntervalMs = () => Math.min(Math.max(pollMs / 2, 9 * fullClaimTookMs), leaseMs / 10);

  return {
    async claim(limit, { full = false } = {}) {
      const startedAt = performance.now();
      const isDrained = drainedAt !== Number.NEGATIVE_INFINITY;
      const isFull = full || !isDrained || startedAt - fullClaimAt >= fullClaimIntervalMs();
      const jobs = await claims.claim(db, {
        limit,
        leaseMs,
        worker: id,
        ...(queue !== undefined && { queue }),
        ...(!isFull && { dueWithinMs: startedAt - drainedAt + commitDelayMs }),
      });
      if (isFull) {
        fullClaimAt = performance.now();
        fullClaimTookMs = fullClaimAt - startedAt;
      }
      if (jobs.length < limit) drainedAt = startedAt;
      observeDuration("todoke.worker.claim.duration", startedAt, { worker: name });
      // If the result took longer than the lease, another worker may have claimed the rows by now.
      return performance.now() - startedAt < leaseMs ? jobs : [];
    },
  };
}
