/**
 * Removes finished rows by age, in small batches. A row that is not finished is never removed, however old it is: what
 * is finished is part of the policy, and every policy of the kernel's own tables is here.
 *
 * Any number of processes may do this at once: each takes rows that no other has locked.
 */
import { type Db, statement } from "../db/index.ts";
import { identifier } from "../db/pool.ts";
import { count } from "../telemetry/index.ts";
import { periodically } from "../worker/periodically.ts";

export interface RetentionPolicy {
  readonly table: string;
  /** SQL that is true only of rows that nobody needs for work any more. */
  readonly finished: string;
  /** The time from which the age counts; indexed. */
  readonly since: string;
  readonly keepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

export const retentionOf = {
  publishedEvents: (keepMs = 7 * dayMs): RetentionPolicy => ({
    table: "outbox_events",
    finished: "status = 'PUBLISHED'",
    since: "published_at",
    keepMs,
  }),
  /** An expired key is finished by definition. */
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
  /** Counts of events that never came again; nothing depends on them by then. */
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

// Small enough that no other statement waits long for its locks or its WAL.
const batchMax = 1_000;

/** Removes what is old enough now and returns how many rows that were. */
export async function removeFinished(db: Db, policy: RetentionPolicy, stopping?: AbortSignal): Promise<number> {
  const table = identifier(policy.table);
  const since = identifier(policy.since);
  const text = `
delete from ${table} where ctid = any(array(
  select ctid from ${table}
   where ${policy.finished} and ${since} < now() - $1::float8 * interval '1 millisecond'
   order by ${since} limit ${batchMax} for update skip locked))`;
  let removed = 0;
  for (;;) {
    const { rowCount } = await statement(db, { name: `retention ${table}`, text, values: [policy.keepMs] });
    removed += rowCount ?? 0;
    if ((rowCount ?? 0) < batchMax || stopping?.aborted) break;
  }
  count("todoke.retention.removed", { table }, removed);
  return removed;
}

/** Removes by all policies every `everyMs`, until stopped. */
export function keepClean(
  db: Db,
  policies: readonly RetentionPolicy[],
  options: { everyMs?: number; onError?: (error: unknown) => void } = {},
): AsyncDisposable {
  const { everyMs = 60_000, onError } = options;
  const what = "removing old rows";
  return periodically(
    async (stopping) => {
      for (const policy of policies) {
        await removeFinished(db, policy, stopping).catch((error) =>
          onError?.(new Error(`${what} of ${policy.table} failed`, { cause: error })),
        );
      }
    },
    { everyMs, what },
  );
}

export interface Horizons {
  /** How long processed_events are kept. */
  readonly inboxMs: number;
  /** How long the broker may still deliver a message. */
  readonly brokerMs: number;
  /** How long after its publication an event may be published again by hand. */
  readonly redriveMs: number;
}

/** Undefined when the inbox remembers long enough, else what is wrong: an event that comes later would take effect twice. */
export function inboxForgetsTooSoon({ inboxMs, brokerMs, redriveMs }: Horizons): string | undefined {
  if (inboxMs >= brokerMs + redriveMs) return undefined;
  const days = (ms: number) => `${Math.round((ms / dayMs) * 10) / 10} days`;
  return (
    `processed events are kept for ${days(inboxMs)}, but an event may come again for ` +
    `${days(brokerMs)} (broker) + ${days(redriveMs)} (redrive): keep them at least ${days(brokerMs + redriveMs)}`
  );
}
