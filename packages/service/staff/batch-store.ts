/** The table `dead_letter_batches`. */
import { type Queryable, rfc3339Sql, type Tx, toLastError } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { BatchView, Filter } from "./views.ts";

/** Also in the topic that wakes the worker. */
export const batchesTable = "dead_letter_batches";

export type BatchRow = Omit<BatchView, "service">;

const columns = `batch_id::text as batch_id, act, of_table as "table", filter, reason, created_by,
  ${rfc3339Sql("created_at")} as created_at, state, total, total_capped, examined, applied,
  ${rfc3339Sql("finished_at")} as finished_at, error`;

export interface NewBatch {
  readonly batchId: string;
  readonly act: "redrive" | "discard";
  readonly table: string;
  readonly filter: Filter;
  readonly through: string;
  readonly total: number;
  readonly totalCapped: boolean;
  readonly by: string;
  readonly reason: string;
}

export async function insertBatch(tx: Tx, batch: NewBatch): Promise<BatchRow> {
  const { batchId, act, table, filter, through, total, totalCapped, by, reason } = batch;
  const { rows } = await tx.query<BatchRow>({
    name: "insert dead letter batch",
    text: `insert into dead_letter_batches
             (batch_id, act, of_table, filter, through, total, total_capped, created_by, reason)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ${columns}`,
    values: [batchId, act, table, JSON.stringify(filter), through, total, totalCapped, by, reason],
  });
  return rows[0] as BatchRow;
}

export async function selectBatch(db: Queryable, batchId: string): Promise<BatchRow | undefined> {
  const { rows } = await db.query<BatchRow>(`select ${columns} from dead_letter_batches where batch_id = $1`, [
    batchId,
  ]);
  return rows[0];
}

/** Newest first. */
export async function selectBatches(db: Queryable, limit: number): Promise<BatchRow[]> {
  const { rows } = await db.query<BatchRow>(
    `select ${columns} from dead_letter_batches order by dead_letter_batches.created_at desc, dead_letter_batches.batch_id desc limit $1`,
    [limit],
  );
  return rows;
}

/** Returns undefined if it is no longer running. Waits for a running step. */
export async function stopBatch(tx: Tx, batchId: string): Promise<BatchRow | undefined> {
  const { rows } = await tx.query<BatchRow>({
    name: "stop dead letter batch",
    text: `update dead_letter_batches set state = 'STOPPED', finished_at = now()
            where batch_id = $1 and state = 'RUNNING' returning ${columns}`,
    values: [batchId],
  });
  return rows[0];
}

export interface LockedBatch {
  readonly batch_id: string;
  readonly act: "redrive" | "discard";
  readonly table: string;
  readonly filter: Filter;
  readonly position: string;
  readonly through: string;
  readonly created_by: string;
  readonly created_at: string;
  readonly reason: string;
}

/** The oldest running batch that no other process works on. Batches whose last step failed come last. */
export async function lockRunningBatch(tx: Tx): Promise<LockedBatch | undefined> {
  const { rows } = await tx.query<LockedBatch>({
    name: "lock dead letter batch",
    text: `select batch_id::text as batch_id, act, of_table as "table", filter, position::text as position,
                  through::text as through, created_by, ${rfc3339Sql("created_at")} as created_at, reason
             from dead_letter_batches where state = 'RUNNING'
            order by error is not null, created_at limit 1 for update skip locked`,
  });
  return rows[0];
}

export interface Step {
  readonly position: string;
  readonly examined: number;
  readonly applied: number;
  readonly isLast: boolean;
}

export async function saveStep(tx: Tx, batchId: string, { position, examined, applied, isLast }: Step): Promise<void> {
  await tx.query({
    name: "save step of dead letter batch",
    text: `update dead_letter_batches
              set position = $2, examined = examined + $3, applied = applied + $4, error = null,
                  state = case when $5 then 'DONE' else 'RUNNING' end, finished_at = case when $5 then now() end
            where batch_id = $1`,
    values: [batchId, position, examined, applied, isLast],
  });
}

export async function saveStepError(db: Queryable, batchId: string, error: unknown): Promise<void> {
  await db.query(`update dead_letter_batches set error = $2 where batch_id = $1 and state = 'RUNNING'`, [
    batchId,
    toLastError(error instanceof Error ? error.message : String(error)),
  ]);
}

const dayMs = 24 * 60 * 60 * 1_000;

export const finishedBatches: RetentionPolicy = {
  table: batchesTable,
  finished: "state <> 'RUNNING'",
  since: "finished_at",
  keepMs: 90 * dayMs,
};
