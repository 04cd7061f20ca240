/** The SQL of the bus, apart from its claims. */
import type { ConsumerLag, Envelope } from "@todoke/kernel/bus";
import {
  type ClaimTableSpec,
  type Completion,
  createClaims,
  createCompletion,
  delayCountMax,
} from "@todoke/kernel/claims";
import {
  type Db,
  getSqlState,
  type MigrationSet,
  type Queryable,
  rfc3339Sql,
  runStatement,
  type Tx,
  transaction,
} from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";

export const busMigrations: MigrationSet = { name: "bus-postgres", dir: new URL("./migrations/", import.meta.url) };

/** A claimed delivery with its message. Without an event id, the message is missing. */
export type StoredDelivery = Omit<Envelope, "eventId"> & { readonly eventId: string | null };

/**
 * `dead` is never used: a consumer dead-letters an event itself, and later events must not wait for it. `prefix` is the schema
 * of the bus and a dot, for a transaction of a consumer.
 */
const deliveriesSpec = (prefix: string): ClaimTableSpec => ({
  table: "bus_deliveries",
  key: "delivery_id",
  keyType: "bigint",
  queue: "consumer",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "DONE", dead: "DEAD" },
  order: { aggregate: "aggregate_key", position: "message_id" },
  select: `m.event_id as "eventId", m.event_type as "eventType", m.subject, m.aggregate_key as "aggregateKey",
    m.occurred_at as "occurredAt", m.headers, m.payload`,
  // A left join: a delivery without its message must be settled too, else it blocks its aggregate.
  join: `left join lateral (select * from ${prefix}bus_messages m where m.message_id = c.message_id limit 1) m on true`,
});

export const deliveries = createClaims<StoredDelivery>(deliveriesSpec(""));

/** Deletes deliveries in the transaction of their consumer. A row that is done serves no purpose but retention. */
export const completeDeliveries = (schema: string): Completion<StoredDelivery> =>
  createCompletion(deliveriesSpec(`${schema}.`), { schema, deletes: true });

/** Deliveries that are not done, counted up to a bound. */
export async function readConsumerLag(db: Queryable, consumer: string): Promise<ConsumerLag> {
  const { rows } = await db.query<Required<Pick<ConsumerLag, "waiting" | "oldestMs">>>(
    `select (select count(*) from (select from bus_deliveries where consumer = $1 and status = 'PENDING' limit ${delayCountMax}) d)::int
            + (select count(*) from (select from bus_deliveries where consumer = $1 and status = 'IN_FLIGHT' limit ${delayCountMax}) d)::int
              as waiting,
            coalesce((select extract(epoch from clock_timestamp() - m.published_at) * 1000
                        from bus_messages m
                       where m.message_id = least(
                         (select message_id from bus_deliveries where consumer = $1 and status = 'PENDING'
                           order by message_id limit 1),
                         (select message_id from bus_deliveries where consumer = $1 and status = 'IN_FLIGHT'
                           order by lease_until limit 1))), 0)::float8 as "oldestMs"`,
    [consumer],
  );
  return rows[0] ?? { waiting: 0 };
}

/** A delivery that is not done. */
export interface WaitingDelivery {
  readonly event_id: string;
  readonly consumer: string;
  readonly status: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  /** The worker that has claimed it. */
  readonly worker: string | null;
  readonly due_at: string;
  readonly published_at: string;
}

/** The deliveries of these events that are not done, by an index probe for each. */
export async function selectWaitingDeliveries(
  db: Queryable,
  eventIds: readonly string[],
): Promise<readonly WaitingDelivery[]> {
  const { rows } = await db.query<WaitingDelivery>(
    `select e.event_id, d.consumer, d.status, d.attempt_count, d.last_error, d.locked_by as worker,
            ${rfc3339Sql("d.next_retry_at")} as due_at, ${rfc3339Sql("m.published_at")} as published_at
       from unnest($1::uuid[]) e(event_id)
      cross join lateral (select m.message_id, m.published_at from bus_messages m where m.event_id = e.event_id limit 1) m
      cross join lateral (select * from bus_deliveries d where d.message_id = m.message_id limit 20) d
      where d.done_at is null`,
    [eventIds],
  );
  return rows;
}

/** Inserts the messages and a delivery per subscribed consumer, in one statement. An event that is stored already is ignored. */
export async function insertMessages(db: Db, events: readonly Envelope[]): Promise<void> {
  await runStatement(db, { name: "bus publish", text: insertMessagesSql(""), values: [toParameter(events)] });
}

/** The same in a transaction of a publisher. */
export function insertMessagesIn(schema: string): (tx: Tx, events: readonly Envelope[]) => Promise<void> {
  const text = insertMessagesSql(`${schema}.`);
  return async (tx, events) => {
    await tx.query({ name: "bus publish", text, values: [toParameter(events)] });
  };
}

/** A subscribed consumer of a new message, and whether it handles the message in the transaction that stores it. */
interface StoredFor {
  readonly event_id: string;
  readonly subject: string;
  readonly here: boolean;
}

/**
 * Inserts new messages in a transaction of a consumer that handles them there. It gets no delivery, unless an earlier one of the
 * aggregate waits: then the event must wait too. Rejects if a message is stored already.
 */
export function insertMessagesFor(schema: string, consumer: string) {
  const text = insertMessagesForSql(`${schema}.`);
  return async (tx: Tx, events: readonly Envelope[]): Promise<readonly StoredFor[]> =>
    (await tx.query<StoredFor>({ name: "bus publish here", text, values: [toParameter(events), consumer] })).rows;
}

/**
 * An earlier event of the aggregate was published by a transaction that had committed before the outbox row of this one could
 * be completed, so this statement sees its delivery.
 */
const insertMessagesForSql = (prefix: string) => `
           with e as (
             ${eventsSql}
           ), m as (
             ${insertSql(prefix)}
             returning message_id, event_id, subject, aggregate_key
           ), subscribed as materialized (
             select m.message_id, m.event_id, m.subject, m.aggregate_key, s.consumer,
                    s.consumer = $2 and (select true from ${prefix}bus_deliveries d
                                          where d.consumer = $2 and d.aggregate_key = m.aggregate_key and d.done_at is null
                                          limit 1) is null as here
               from m join ${prefix}bus_subscriptions s on s.subject = m.subject
           ), insert_deliveries as (
             insert into ${prefix}bus_deliveries (consumer, message_id, aggregate_key)
             select consumer, message_id, aggregate_key from subscribed where not here order by message_id
           )
           select event_id, subject, here from subscribed`;

const toParameter = (events: readonly Envelope[]) => JSON.stringify(events.map(messageRow));

const eventsSql = `select * from rows from (jsonb_to_recordset($1::jsonb) as (
                    event_id uuid, event_type text, subject text, aggregate_key text, occurred_at text,
                    headers jsonb, payload text))
                  with ordinality as e(event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, ordinal)`;

const insertSql = (prefix: string) => `
             insert into ${prefix}bus_messages (event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
             select event_id, event_type, subject, aggregate_key, occurred_at, headers, decode(payload, 'base64')
               from e order by ordinal`;

const insertMessagesSql = (prefix: string) => `
           with e as (
             ${eventsSql}
           ), m as (
             ${insertSql(prefix)}
             on conflict (event_id) do nothing
             returning message_id, subject, aggregate_key
           )
           insert into ${prefix}bus_deliveries (consumer, message_id, aggregate_key)
           select s.consumer, m.message_id, m.aggregate_key
             from m join ${prefix}bus_subscriptions s on s.subject = m.subject
            order by m.message_id`;

/**
 * A trace id is part of the traceparent, so a message stores one of them, under a name that no header has: names are in lower
 * case. It is 60 bytes less of write-ahead log for each event.
 */
const traceHeader = "T";

function packHeaders(headers: Envelope["headers"]): Envelope["headers"] {
  const { traceparent, trace_id, ...others } = headers;
  const isPart = trace_id !== undefined && traceparent?.slice(3, 35) === trace_id;
  return isPart ? { ...others, [traceHeader]: traceparent } : headers;
}

export function unpackHeaders(headers: Envelope["headers"]): Envelope["headers"] {
  const { [traceHeader]: traceparent, ...others } = headers;
  return traceparent === undefined ? headers : { ...others, traceparent, trace_id: traceparent.slice(3, 35) };
}

function messageRow(event: Envelope) {
  return {
    event_id: event.eventId,
    event_type: event.eventType,
    subject: event.subject,
    aggregate_key: event.aggregateKey,
    occurred_at: event.occurredAt,
    headers: packHeaders(event.headers),
    payload: Buffer.from(event.payload).toString("base64"),
  };
}

/**
 * Starts a join for the subjects that the consumer has not subscribed to. Returns false if there are none. A consumer has one
 * join at a time: an existing one continues.
 *
 * The lock waits for a retention statement that does not see the join and may be deleting messages. Later statements see it and
 * delete none (`busRetention`). So no message is deleted between the copy reading it and its delivery being committed.
 */
export async function startJoin(db: Db, consumer: string, subjects: readonly string[]): Promise<boolean> {
  const existing = await db.query<{ subject: string }>(`select subject from bus_subscriptions where consumer = $1`, [
    consumer,
  ]);
  if (subjects.every((subject) => existing.rows.some((row) => row.subject === subject))) return false;
  return await transaction(db, async (tx) => {
    await tx.query(`lock table bus_joins in access exclusive mode`);
    await tx.query(
      `insert into bus_joins (consumer, subjects)
       select $1, array_agg(distinct w.subject) from unnest($2::text[]) w(subject)
        where not exists (select from bus_subscriptions s where s.consumer = $1 and s.subject = w.subject)
       having count(*) > 0
       on conflict (consumer) do nothing`,
      [consumer, subjects],
    );
    const { rowCount } = await tx.query(`select from bus_joins where consumer = $1`, [consumer]);
    return rowCount === 1;
  });
}

/** Finished; blocked by another process or by publishers; or copied up to a message. */
export type JoinState =
  | { readonly state: "joined" }
  | { readonly state: "busy" }
  | { readonly state: "copying"; readonly copied: bigint; readonly copiedTo: bigint; readonly copyUntil: bigint };

interface Join {
  readonly consumer: string;
  readonly subjects: readonly string[];
  readonly copied_to: bigint;
  readonly copy_until: bigint;
  readonly copied: bigint;
}

interface CopyBounds {
  /** Messages that are copied beside publishers. */
  readonly batch: number;
  /** Messages that are copied while publishers wait, once per join. More than `batch`, so that the copy catches up. */
  readonly lastBatch: number;
}

/**
 * Copies one batch of history, oldest first, and records the progress in the same transaction: a process that dies has copied
 * the whole batch or nothing. The row lock admits one process at a time. Deliveries appear in the order of their messages, so
 * the consumer can handle them while the copy continues. When everything is copied, the consumer is subscribed.
 */
export async function copyHistory(db: Db, consumer: string, bounds: CopyBounds): Promise<JoinState> {
  return await transaction(db, async (tx) => {
    const { rows } = await tx.query<Join>(
      `select consumer, subjects, copied_to, copy_until, copied from bus_joins where consumer = $1 for update skip locked`,
      [consumer],
    );
    const join = rows[0];
    if (join && join.copied_to < join.copy_until) return await copyBatch(tx, join, bounds.batch);
    if (join) return await finishOrExtend(tx, join, bounds.lastBatch);
    const { rowCount } = await tx.query(`select from bus_joins where consumer = $1`, [consumer]);
    return { state: rowCount === 0 ? "joined" : "busy" } as const;
  }).catch((error) => {
    if (getSqlState(error) !== "55P03") throw error;
    return { state: "busy" };
  });
}

/** $1 subjects, $2 after this message, $3 up to this message, $4 limit. One index probe per subject, merged by message. */
const historySql = `
  select h.message_id, h.aggregate_key
    from unnest($1::text[]) s(subject)
   cross join lateral (
     select m.message_id, m.aggregate_key from bus_messages m
      where m.subject = s.subject and m.message_id > $2 and m.message_id <= $3
      order by m.message_id limit $4
   ) h
   order by h.message_id limit $4`;

async function copyBatch(tx: Tx, join: Join, batchMax: number): Promise<JoinState> {
  const { rows } = await tx.query<{ copied: bigint; copied_to: bigint }>({
    name: "bus copy history",
    text: `with history as materialized (${historySql}),
           insert_deliveries as (
             insert into bus_deliveries (consumer, message_id, aggregate_key)
             select $5, message_id, aggregate_key from history order by message_id
           )
           update bus_joins
              set copied = copied + (select count(*) from history),
                  copied_to = case when (select count(*) from history) < $4 then $3
                                   else (select max(message_id) from history) end
            where consumer = $5
           returning copied, copied_to`,
    values: [join.subjects, join.copied_to, join.copy_until, batchMax, join.consumer],
  });
  const { copied, copied_to: copiedTo } = rows[0] ?? join;
  return { state: "copying", copied, copiedTo, copyUntil: join.copy_until };
}

/** Publishers queue behind this lock request, so it is bounded and retried. */
const publishersWaitMaxMs = 100;

/**
 * Subscribes the consumer if at most `lastBatch` messages are left, else sets the end of the next round.
 *
 * The lock waits for every publish that may not see the subscription, and blocks later ones until they see it: PostgreSQL takes
 * the locks of a statement before its snapshot. Under the lock every assigned message id is committed. So each message is
 * either copied or delivered by its publisher, never both, and every copied one is older than those that publishers deliver.
 */
async function finishOrExtend(tx: Tx, join: Join, lastBatch: number): Promise<JoinState> {
  const { consumer, subjects, copied_to: copiedTo, copied } = join;
  await tx.query(`set local lock_timeout = ${publishersWaitMaxMs}`);
  await tx.query(`lock table bus_subscriptions in access exclusive mode`);
  const { rows } = await tx.query<{ last: bigint }>(`select coalesce(max(message_id), 0) as last from bus_messages`);
  const copyUntil = rows[0]?.last ?? 0n;
  const left = await tx.query(`select from (${historySql}) h`, [subjects, copiedTo, copyUntil, lastBatch + 1]);
  if ((left.rowCount ?? 0) > lastBatch) {
    await tx.query(`update bus_joins set copy_until = $2 where consumer = $1`, [consumer, copyUntil]);
    return { state: "copying", copied, copiedTo, copyUntil };
  }
  await copyBatch(tx, { ...join, copy_until: copyUntil }, lastBatch + 1);
  await tx.query(
    `insert into bus_subscriptions (consumer, subject) select $1, unnest($2::text[]) on conflict do nothing`,
    [consumer, subjects],
  );
  await tx.query(`delete from bus_joins where consumer = $1`, [consumer]);
  return { state: "joined" };
}

/** What a pool connects to. */
interface DatabaseId {
  /** Identifies the database. Two servers do not start in the same microsecond. */
  readonly id: string;
  readonly user: string;
  readonly schema: string;
}

export async function readDatabaseId(db: Db): Promise<DatabaseId> {
  const { rows } = await db.query<DatabaseId>(
    `select pg_postmaster_start_time() || ' ' || oid as id, current_user::text as user, current_schema()::text as schema
       from pg_database where datname = current_database()`,
  );
  return rows[0] as DatabaseId;
}

/** Whether the user of `db` may publish and consume with its own transactions. */
export async function mayUseTables(db: Db, schema: string): Promise<boolean> {
  const { rows } = await db.query<{ may: boolean | null }>(
    `select bool_and(has_table_privilege(c.oid, p.privilege)) and count(*) = 3 * 4
            and has_schema_privilege(to_regnamespace($1), 'usage') as may
       from pg_class c, unnest(array['select', 'insert', 'update', 'delete']) p(privilege)
      where c.relnamespace = to_regnamespace($1)
        and c.relname in ('bus_messages', 'bus_deliveries', 'bus_subscriptions')`,
    [schema],
  );
  return rows[0]?.may ?? false;
}

/** The version, and settings that are off although a stored message can be lost without them. */
export async function readDurability(db: Db): Promise<{ version: string; off: string[] }> {
  const { rows } = await db.query<{ version: string; off: string[] }>(
    `select current_setting('server_version') as version,
            array(select name from pg_settings
                   where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off') as off`,
  );
  return rows[0] ?? { version: "unknown", off: [] };
}

export function busRetention(keepMs: number): RetentionPolicy[] {
  return [
    { table: "bus_deliveries", finished: "status = 'DONE'", since: "done_at", keepMs },
    {
      table: "bus_messages",
      // While a consumer joins, the copy may be creating a delivery of any message: none is deleted (`startJoin`).
      finished: `not exists (select from bus_joins)
        and not exists (select from bus_deliveries d where d.message_id = bus_messages.message_id)`,
      since: "published_at",
      sweeps: true,
      keepMs,
    },
  ];
}
