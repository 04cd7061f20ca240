/** The claims of the relay on `outbox_events`, and what operators read from it. */
import { hash } from "node:crypto";
import type { Envelope } from "../bus/index.ts";
import { type Claims, type ClaimTableSpec, type Completion, createClaims, createCompletion } from "../claims/index.ts";
import { type Queryable, rfc3339Sql } from "../db/index.ts";
import { createDeadLetters } from "../dead-letters/index.ts";
import { checkSubject } from "./insert-events-sql.ts";

/** An event as the relay claims it. */
export interface OutboxEvent extends Omit<Envelope, "payload"> {
  /** JSON text, not parsed: a JavaScript number would lose digits past 2^53. */
  readonly payload: string;
  /** Time since the insert, by the database's clock. */
  readonly ageMs: number;
}

const outboxSpec: ClaimTableSpec = {
  table: "outbox_events",
  key: "event_id",
  keyType: "uuid",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "PUBLISHED", dead: "FAILED" },
  columns: { doneAt: "published_at" },
  order: { aggregate: "aggregate_key", position: "position" },
  select: `c.event_id as "eventId", c.event_type as "eventType", c.subject, c.aggregate_key as "aggregateKey",
    ${rfc3339Sql("c.occurred_at")} as "occurredAt",
    c.headers, c.payload::text as payload,
    (extract(epoch from clock_timestamp() - c.created_at) * 1000)::float8 as "ageMs"`,
};

export const outboxClaims = createClaims<OutboxEvent>(outboxSpec);

/** Some subjects of an outbox: those named, or all others. */
export type SubjectFilter = { readonly only: readonly string[] } | { readonly except: readonly string[] };

/**
 * Claims events of these subjects only. The order of an aggregate holds across subjects: its next event waits until the one
 * before it is published, by whichever relay claims that one.
 */
export function outboxClaimsOf(filter: SubjectFilter): Claims<OutboxEvent> {
  const [operator, subjects] = "only" in filter ? ["in", filter.only] : ["not in", filter.except];
  const where = `t.subject ${operator} (${subjects.map((subject) => `'${checkSubject(subject)}'`).join(", ")})`;
  // PostgreSQL reads 63 bytes of the name of a statement, too few for the subjects.
  const name = `outbox_events ${hash("sha256", where, "hex").slice(0, 8)}`;
  return createClaims({ ...outboxSpec, name, claim: { where } });
}

/** Makes events PUBLISHED in the transaction that stores their messages. */
export const completeEvents = createCompletion<OutboxEvent>(outboxClaims.table);

const completions = new Map<string, Completion<OutboxEvent>>();

/** The same in a transaction that has another schema: the outbox is in this one. */
export function completeEventsIn(schema: string): Completion<OutboxEvent> {
  const complete = completions.get(schema) ?? createCompletion<OutboxEvent>(outboxClaims.table, { schema });
  completions.set(schema, complete);
  return complete;
}

/** The table's name, which the topic of a relay's wake-ups contains. */
export const outboxTable = outboxClaims.table.table;

interface FailedEvent {
  readonly version: string;
  /** How many later events of its aggregate are parked behind it. */
  readonly parked: number;
}

export interface OutboxEventDetail {
  readonly status: "PENDING" | "IN_FLIGHT" | "PUBLISHED" | "FAILED";
  readonly subject: string;
  readonly occurred_at: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
}

/** FAILED events as dead letters, for operators. */
export const outboxDeadLetters = createDeadLetters<OutboxEventDetail, FailedEvent>({
  claims: outboxClaims,
  from: "outbox_events r",
  isDead: "r.status = 'FAILED'",
  id: "r.event_id",
  cursor: "r.position",
  about: "r.aggregate_key",
  // A match has two players, in a list.
  isOfUser: (user) => `r.payload ->> 'user_id' = ${user} or jsonb_path_exists(r.payload, '$.**.user_id ? (@ == $user)',
      jsonb_build_object('user', ${user}))`,
  since: "r.created_at",
  // A dead row keeps the time at which its last attempt failed.
  diedAt: "r.next_retry_at",
  summary: `r.version::text as version,
    (select count(*) from outbox_events b
      where b.aggregate_key = r.aggregate_key and b.position > r.position and b.published_at is null)::int as parked`,
  detail: `r.status, r.subject, ${rfc3339Sql("r.occurred_at")} as occurred_at, r.headers, r.payload`,
});

export interface OutboxBacklog {
  readonly pending: number;
  readonly inFlight: number;
  readonly failed: number;
  /** Age of the oldest event that a relay could claim now, which excludes retries that are not due and parked events. */
  readonly oldestClaimableMs: number;
}

export async function outboxBacklog(db: Queryable): Promise<OutboxBacklog> {
  const { rows } = await db.query<OutboxBacklog>(
    `select (select count(*) from outbox_events where status = 'PENDING')::int as pending,
            (select count(*) from outbox_events where status = 'IN_FLIGHT')::int as "inFlight",
            (select count(*) from outbox_events where status = 'FAILED')::int as failed,
            coalesce((select extract(epoch from clock_timestamp() - e.created_at) * 1000
                        from outbox_events e
                       where e.status = 'PENDING' and e.next_retry_at <= now()
                         and not exists (select from outbox_events b
                                          where b.aggregate_key = e.aggregate_key and b.position < e.position
                                            and b.published_at is null)
                       order by e.position limit 1), 0)::float8 as "oldestClaimableMs"`,
  );
  return rows[0] as OutboxBacklog;
}
