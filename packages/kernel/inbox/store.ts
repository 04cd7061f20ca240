/** The SQL of the inbox. */
import type { Envelope } from "../bus/index.ts";
import { createClaims, type Delays, delayCountMax, failuresMin, readDelays } from "../claims/index.ts";
import { type Db, type Queryable, runStatement, type Tx, toLastError } from "../db/index.ts";
import { createDeadLetters } from "../dead-letters/index.ts";

/** Marks the events as processed. Returns the IDs of those that were not marked before. */
export async function insertProcessed(tx: Tx, consumer: string, eventIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ event_id: string }>({
    name: "inbox processed",
    // Sorted, so that two processes with the same events lock them in the same order.
    text: `insert into processed_events (consumer, event_id)
           select $1, e.event_id from unnest($2::uuid[]) as e(event_id) order by e.event_id
           on conflict do nothing
           returning event_id`,
    values: [consumer, eventIds],
  });
  return new Set(rows.map((row) => row.event_id));
}

/** Marks events that nobody has processed. Rejects if one of them is marked, which costs less to find out than to ignore. */
export async function insertNewlyProcessed(tx: Tx, consumer: string, eventIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "inbox newly processed",
    text: `insert into processed_events (consumer, event_id)
           select $1, e.event_id from unnest($2::uuid[]) as e(event_id) order by e.event_id`,
    values: [consumer, eventIds],
  });
}

/** Counts an attempt before it begins. Returns undefined if the event is already processed. */
export async function countAttempt(db: Db, consumer: string, eventId: string): Promise<number | undefined> {
  const { rows } = await runStatement<{ attempt_count: number }>(db, {
    name: "inbox attempt",
    text: `insert into inbox_attempts as a (consumer, event_id, attempt_count)
           select $1, $2, 1
            where not exists (select from processed_events where consumer = $1 and event_id = $2)
           on conflict (consumer, event_id)
           do update set attempt_count = a.attempt_count + 1, updated_at = now()
           returning attempt_count`,
    values: [consumer, eventId],
  });
  return rows[0]?.attempt_count;
}

/** Undoes the attempt count: the event did not cause the failure. */
export async function uncountAttempt(db: Db, consumer: string, eventId: string): Promise<void> {
  const text = `update inbox_attempts set attempt_count = attempt_count - 1 where consumer = $1 and event_id = $2`;
  await runStatement(db, { name: "inbox attempt uncounted", text, values: [consumer, eventId] });
}

export async function deleteAttempts(tx: Tx, consumer: string, eventId: string): Promise<void> {
  await tx.query(`delete from inbox_attempts where consumer = $1 and event_id = $2`, [consumer, eventId]);
}

/** Records reason the event must be dead-lettered, if that fails for now. */
export async function updateLastError(db: Db, consumer: string, eventId: string, reason: string): Promise<void> {
  const text = `update inbox_attempts set last_error = $3, updated_at = now() where consumer = $1 and event_id = $2`;
  await runStatement(db, { name: "inbox last error", text, values: [consumer, eventId, toLastError(reason)] });
}

export async function selectLastError(db: Db, consumer: string, eventId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ last_error: string | null }>(
    `select last_error from inbox_attempts where consumer = $1 and event_id = $2`,
    [consumer, eventId],
  );
  return rows[0]?.last_error ?? undefined;
}

/**
 * Copies the event to `inbox_dlq` and marks it processed, so that a redelivery is ignored. Returns false if it was processed
 * before. A resolved row outlives its mark; an event that is redelivered and fails after that is DEAD again.
 */
export async function insertDead(tx: Tx, consumer: string, event: Envelope, reason: string): Promise<boolean> {
  const marked = await tx.query(
    `insert into processed_events (consumer, event_id, result) values ($1, $2, 'dead') on conflict do nothing`,
    [consumer, event.eventId],
  );
  if (marked.rowCount === 0) return false;
  await tx.query(
    `insert into inbox_dlq as d
       (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, last_error)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (consumer, event_id) do update
        set status = 'DEAD', attempt_count = 0, dead_at = now(), resolved_at = null, headers = excluded.headers,
            payload = excluded.payload, last_error = excluded.last_error
      where d.status = 'RESOLVED'`,
    [
      consumer,
      event.eventId,
      event.eventType,
      event.subject,
      event.aggregateKey,
      event.occurredAt,
      JSON.stringify(event.headers),
      event.payload,
      toLastError(reason),
    ],
  );
  return true;
}

/** Changes the mark of a dead event to "effect". Returns false if another redrive has done so. */
export async function markEffective(tx: Tx, consumer: string, eventId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update processed_events set result = 'effect', processed_at = now()
      where consumer = $1 and event_id = $2 and result = 'dead'`,
    [consumer, eventId],
  );
  return rowCount === 1;
}

/** Dead letters as jobs: a redrive makes a DEAD row PENDING, and the consumer's redriver claims it. */
export const inboxDlqClaims = createClaims<Envelope>({
  table: "inbox_dlq",
  key: "dlq_id",
  keyType: "bigint",
  queue: "consumer",
  states: { ready: "PENDING", claimed: "PROCESSING", done: "RESOLVED", dead: "DEAD" },
  columns: { doneAt: "resolved_at" },
  select: `c.event_id as "eventId", c.event_type as "eventType", c.subject, c.aggregate_key as "aggregateKey",
    c.occurred_at as "occurredAt", c.headers, c.payload`,
});

/** Events that the consumer fails to process repeatedly, and redriven ones that no worker claims. */
export async function readInboxDelays(db: Queryable, consumer: string): Promise<readonly Delays[]> {
  const { rows } = await db.query<Pick<Delays, "failing" | "lastError">>(
    `with failing as materialized (
       select a.attempt_count, a.last_error
         from (select * from inbox_attempts where consumer = $1 order by event_id limit ${delayCountMax}) a
        where a.attempt_count >= ${failuresMin}
          and not exists (select from processed_events p where p.consumer = $1 and p.event_id = a.event_id))
     select (select count(*) from failing)::int as failing,
            (select last_error from failing order by attempt_count desc limit 1) as "lastError"`,
    [consumer],
  );
  const [attempts = { failing: 0, lastError: null }] = rows;
  return [
    { table: "inbox_attempts", late: 0, oldestMs: 0, parked: 0, ...attempts },
    await readDelays(db, inboxDlqClaims.table, consumer),
  ];
}

/** The table's name, which the topic of a redriver's wake-ups contains. */
export const inboxDlqTable = inboxDlqClaims.table.table;

/** The columns that a list of dead events adds to those of every dead letter. */
export interface DeadEventSummary {
  readonly event_id: string;
  readonly subject: string;
}

export interface DeadEventDetail {
  readonly status: "DEAD" | "PENDING" | "PROCESSING" | "RESOLVED";
  readonly consumer: string;
  readonly occurred_at: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload_base64: string;
}

/** The dead letters of a consumer, for operators. */
export const inboxDeadLetters = (consumer: string) =>
  createDeadLetters<DeadEventDetail, DeadEventSummary>({
    claims: inboxDlqClaims,
    from: "inbox_dlq r",
    isDead: "r.status = 'DEAD'",
    queue: consumer,
    id: "r.dlq_id",
    cursor: "r.dlq_id",
    about: "r.aggregate_key",
    // Encoded events have a text as its length and its bytes. An unreadable one may still name its user.
    isOfUser: (user) => `octet_length(${user}) < 128 and
      position(set_byte('\\x00', 0, octet_length(${user}) % 128) || convert_to(${user}, 'UTF8') in r.payload) > 0`,
    since: "r.dead_at",
    // After a redrive, the time at which its last attempt failed.
    diedAt: "greatest(r.dead_at, r.next_retry_at)",
    summary: "r.event_id, r.subject",
    detail: `r.status, r.consumer, r.occurred_at, r.headers,
      translate(encode(r.payload, 'base64'), E'\\n', '') as payload_base64`,
  });
