/**
 * Retention: deletes finished rows by age, in small batches. An unfinished row is never deleted, however old it is; each
 * policy says which rows are finished. The policies of the kernel's own tables are here.
 *
 * Any number of processes may run it at once; each skips rows that another has locked.
 *
 * A table that gets a row with every command has no index by age: each of its entries would cost more than the removal of
 * its row. Such a table is swept: read page by page, a part at each pass, so that the whole is read about once an hour.
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
  /** The column that the age is counted from. It is indexed, unless the table is swept. */
  readonly since: string;
  /** A SET list. The rows stay, with these changes, after which they are no longer `finished`. */
  readonly reduces?: string;
  /** Finds the rows by reading the table, and not by an index. */
  readonly sweeps?: true;
  readonly keepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

/** The policies of the kernel's own tables. */
export const retentionPolicies = {
  publishedEvents: (keepMs = 7 * dayMs): RetentionPolicy => ({
    table: "outbox_events",
    finished: "status = 'PUBLISHED'",
    since: "published_at",
    sweeps: true,
    keepMs,
  }),
  /** Deletes expired keys. */
  idempotencyKeys: (): RetentionPolicy => ({
    table: "idempotency_keys",
    finished: "true",
    since: "expires_at",
    sweeps: true,
    keepMs: 0,
  }),
  processedEvents: (keepMs = 14 * dayMs): RetentionPolicy => ({
    table: "processed_events",
    finished: "result = 'effect'",
    since: "processed_at",
    sweeps: true,
    keepMs,
  }),
  /** Deletes attempt counts of events that were not redelivered. */
  inboxAttempts: (keepMs = 14 * dayMs): RetentionPolicy => ({
    table: "inbox_attempts",
    finished: "true",
    since: "updated_at",
    keepMs,
  }),
  /** Removes the copies of discarded rows, but for what audits and `show` need. */
  discardedCopies: (keepMs = 30 * dayMs): RetentionPolicy => ({
    table: "redrives",
    finished: "discarded is not null and copy_removed_at is null",
    since: "redriven_at",
    reduces: `copy_removed_at = now(), discarded = jsonb_strip_nulls(jsonb_build_object(
      'event_id', discarded -> 'event_id', 'event_type', discarded -> 'event_type', 'consumer', discarded -> 'consumer'))`,
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
  return await (policy.sweeps ? createSweep(db, policy, { passes: 1 })(stopping) : deleteByIndex(db, policy, stopping));
}

const isOld = ({ finished, since }: RetentionPolicy) =>
  `${finished} and ${identifier(since)} < now() - $1::float8 * interval '1 millisecond'`;

async function deleteByIndex(db: Db, policy: RetentionPolicy, stopping?: AbortSignal): Promise<number> {
  const table = identifier(policy.table);
  const change = policy.reduces ? `update ${table} set ${policy.reduces}` : `delete from ${table}`;
  const text = `
${change} where ctid = any(array(
  select ctid from ${table} where ${isOld(policy)}
   order by ${identifier(policy.since)} limit ${batchMax} for update skip locked))`;
  const deleteBatch = () =>
    runDelete(db, { name: `retention ${policy.reduces ? "in" : "of"} ${table}`, text, values: [policy.keepMs] });
  const removed = await runBatches(deleteBatch, { batchMax, ...(stopping && { stopping }) });
  count("todoke.retention.removed", { table }, removed);
  return removed;
}

async function runDelete(db: Db, query: { name?: string; text: string; values: unknown[] }): Promise<number> {
  const { rowCount } = await runStatement(db, query);
  return rowCount ?? 0;
}

export interface SweepOptions {
  /** The number of passes that together read the whole table. */
  readonly passes: number;
  /** Pages per pass at least. The default is 32 MB: a small table is read whole. */
  readonly pagesMin?: number;
}

/** Pages per statement: some thousand rows at most. */
const pagesPerStatement = 32;

/** Returns a pass, which reads the next part of the table, deletes the old rows in it and returns how many those were. */
export function createSweep(db: Db, policy: RetentionPolicy, { passes, pagesMin = 4_096 }: SweepOptions) {
  const table = identifier(policy.table);
  const text = sweepSql(policy);
  const sizeSql = `select pg_relation_size('${table}'::regclass) / current_setting('block_size')::int as pages`;
  let nextPage = 0;

  return async (stopping?: AbortSignal): Promise<number> => {
    const pages = Number((await db.query(sizeSql)).rows[0]?.pages ?? 0);
    if (nextPage >= pages) nextPage = 0;
    const end = Math.min(pages, nextPage + Math.max(pagesMin, Math.ceil(pages / passes)));
    let removed = 0;
    while (nextPage < end && !stopping?.aborted) {
      const to = Math.min(end, nextPage + pagesPerStatement);
      // Without a name, so that every range is planned by its own values: a cached plan might read the whole table each time.
      removed += await runDelete(db, { text, values: [policy.keepMs, `(${nextPage},0)`, `(${to},0)`] });
      nextPage = to;
    }
    count("todoke.retention.removed", { table }, removed);
    return removed;
  };
}

/** $1 keepMs, $2 the first page as a tid, $3 the page after the last. */
export function sweepSql(policy: RetentionPolicy): string {
  const table = identifier(policy.table);
  return `
delete from ${table} where ctid = any(array(
  select ctid from ${table} where ctid >= $2::tid and ctid < $3::tid and ${isOld(policy)} for update skip locked))`;
}

const passesPerHour = 60;

/** Applies all policies periodically until disposed. */
export function startRetention(
  db: Db,
  policies: readonly RetentionPolicy[],
  options: { intervalMs?: number; onError?: (error: unknown) => void } = {},
): AsyncDisposable {
  const { intervalMs = 60_000, onError } = options;
  const task = "removing old rows";
  const passes = policies.map((policy) => ({
    policy,
    run: policy.sweeps
      ? createSweep(db, policy, { passes: passesPerHour })
      : (stopping: AbortSignal) => deleteByIndex(db, policy, stopping),
  }));
  return startLoop(
    async (stopping) => {
      for (const { policy, run } of passes) {
        await run(stopping).catch((error) =>
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
