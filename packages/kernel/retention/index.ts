/**
 * Retention: deletes finished rows by age, in small batches. An unfinished row is never deleted, however old it is; each
 * policy says which rows are finished. The policies of the kernel's own tables are here.
 *
 * Any number of processes may run it at once; each skips rows that another has locked.
 */
import { type Db, runStatement } from "../db/index.ts";
import { identifier } from "../db/pool.ts";
import { count } from "../telemetry/index.ts";
import { startLoop } from "../worker/loop.ts";
import { runBatches } from "../worker/run-batches.ts";

export interface RetentionPolicy {
  readonly table: string;
  /** An SQL condition that only finished rows meet. */
  readonly finished: string;
  /** The indexed column that the age is counted from. */
  readonly since: string;
  readonly keepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

/** The policies of the kernel's own tables. */
export const retentionPolicies = {
  publishedEvents: (keepMs = 7 * dayMs): RetentionPolicy => ({
    table: "outbox_events",
    finished: "status = 'PUBLISHED'",
    since: "published_at",
    keepMs,
  }),
  /** Deletes expired keys. */
  idempotencyKeys: (): RetentionPolicy => ({
    table: "idempotency_keys",
    finished: "true",
    since: "expires_at",
    keepMs: 0,
  }),
  processedEvents: (keepMs = 14 * dayMs): RetentionPolicy => ({
    table: "processed_events",
    finished: "result = 'effect'",
    since: "processed_at",
    keepMs,
  }),
  /** Deletes attempt counts of events that were not redelivered. */
  inboxAttempts: (keepMs = 14 * dayMs): RetentionPolicy => ({
    table: "inbox_attempts",
    finished: "true",
    since: "updated_at",
    keepMs,
  }),
  resolvedDeadLetters: (keepMs = 30 * dayMs): RetentionPolicy => ({
    table: "inbox_dlq",
    finished: "status = 'RESOLVED'",
    since: "resolved_at",
    keepMs,
  }),
};

// Small enough that no other statement waits long for its locks or WAL.
const batchMax = 1_000;

/** Deletes the rows that are old enough now. Returns how many. */
export async function deleteFinished(db: Db, policy: RetentionPolicy, stopping?: AbortSignal): Promise<number> {
  const table = identifier(policy.table);
  const since = identifier(policy.since);
  const sql = `
delete from ${table} where ctid = any(array(
  select ctid from ${table}
   where ${policy.finished} and ${since} < now() - $1::float8 * interval '1 millisecond'
   order by ${since} limit ${batchMax} for update skip locked))`;
  async function deleteBatch(): Promise<number> {
    const { rowCount } = await runStatement(db, { name: `retention ${table}`, text: sql, values: [policy.keepMs] });
    return rowCount ?? 0;
  }
  const removed = await runBatches(deleteBatch, { batchMax, ...(stopping && { stopping }) });
  count("todoke.retention.removed", { table }, removed);
  return removed;
}

/** Applies all policies periodically until disposed. */
export function startRetention(
  db: Db,
  policies: readonly RetentionPolicy[],
  options: { intervalMs?: number; onError?: (error: unknown) => void } = {},
): AsyncDisposable {
  const { intervalMs = 60_000, onError } = options;
  const task = "removing old rows";
  return startLoop(
    async (stopping) => {
      for (const policy of policies) {
        await deleteFinished(db, policy, stopping).catch((error) =>
          onError?.(new Error(`${task} of ${policy.table} failed`, { cause: error })),
        );
      }
    },
    { intervalMs },
  );
}

export interface RetentionWindows {
  /** How long `processed_events` are kept. */
  readonly inboxMs: number;
  /** How long the message broker may redeliver an event. */
  readonly brokerMs: number;
  /** How long after its publication an operator may publish an event again. */
  readonly redriveMs: number;
}

/** Returns an error text if processed events are deleted while a redelivery is possible: it would take effect twice. */
export function inboxRetentionError({ inboxMs, brokerMs, redriveMs }: RetentionWindows): string | undefined {
  if (inboxMs >= brokerMs + redriveMs) return undefined;
  const days = (ms: number) => `${Math.round((ms / dayMs) * 10) / 10} days`;
  return (
    `processed events are kept for ${days(inboxMs)}, but an event may be redelivered for ` +
    `${days(brokerMs)} (broker) + ${days(redriveMs)} (redrive): keep them for at least ${days(brokerMs + redriveMs)}`
  );
}
