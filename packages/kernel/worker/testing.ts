/** A worker on the outbox, for tests. */
import type { Claimed } from "../claims/index.ts";
import { type Db, transaction } from "../db/index.ts";
import { openOutbox, outboxClaims } from "../outbox/index.ts";
import { createWorker, type JobOutcome, type Worker, type WorkerOptions } from "./index.ts";

type Job = Claimed<{ readonly aggregateKey: string }>;
type Options = Pick<WorkerOptions<object>, "settings" | "wakeups" | "topic" | "onError" | "db">;

const outbox = openOutbox();

/** One event for each aggregate key. */
export async function appendEvents(db: Db, ...aggregateKeys: string[]): Promise<void> {
  const events = aggregateKeys.map((aggregateKey) => ({
    eventType: "T",
    subject: "t.events",
    aggregateKey,
    version: 1,
    payload: {},
  }));
  await transaction(db, (tx) => outbox.append(tx, ...events));
}

export const outboxWorker = (
  db: Db,
  run: (job: Job, signal: AbortSignal) => Promise<JobOutcome>,
  { settings, ...options }: Partial<Options> = {},
): Worker =>
  createWorker({
    name: "test",
    db,
    claims: outboxClaims,
    run: (jobs, leases) => jobs.map((job) => run(job, leases.of(job).signal)),
    settings: { pollMs: 20, ...settings },
    ...options,
  });

export const readStatuses = async (db: Db): Promise<string[]> =>
  (await db.query<{ status: string }>(`select status from outbox_events order by position`)).rows.map(
    (row) => row.status,
  );
