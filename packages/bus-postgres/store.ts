/** All the SQL of the PostgreSQL bus but the claims. */
import type { Envelope } from "@todoke/kernel/bus";
import { claims } from "@todoke/kernel/claims";
import { type Db, type MigrationSet, statement, transaction } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";

export const busMigrations: MigrationSet = { name: "bus-postgres", dir: new URL("./migrations/", import.meta.url) };

/** `dead` is never used: a consumer that gives a message up has put it away itself, and later ones must not wait for it. */
export const deliveries = claims<Envelope>({
  table: "bus_deliveries",
  key: "delivery_id",
  keyType: "bigint",
  queue: "consumer",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "DONE", dead: "DEAD" },
  order: { aggregate: "aggregate_key", position: "message_id" },
  read: `m.event_id as "eventId", m.event_type as "eventType", m.subject, m.aggregate_key as "aggregateKey",
    m.occurred_at as "occurredAt", m.headers, m.payload`,
  join: "cross join lateral (select * from bus_messages m where m.message_id = c.message_id limit 1) m",
});

/** Stores the messages and a delivery for everybody who subscribed, in one statement. An event stored before is left alone. */
export async function insertMessages(db: Db, events: readonly Envelope[]): Promise<void> {
  await statement(db, {
    name: "bus publish",
    text: `with e as (
             select * from rows from (jsonb_to_recordset($1::jsonb) as (
                    event_id uuid, event_type text, subject text, aggregate_key text, occurred_at text,
                    headers jsonb, payload text))
                  with ordinality as e(event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, place)
           ), m as (
             insert into bus_messages (event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
             select event_id, event_type, subject, aggregate_key, occurred_at, headers, decode(payload, 'base64')
               from e order by place
             on conflict (event_id) do nothing
             returning message_id, subject, aggregate_key
           )
           insert into bus_deliveries (consumer, message_id, aggregate_key)
           select s.consumer, m.message_id, m.aggregate_key
             from m join bus_subscriptions s on s.subject = m.subject
            order by m.message_id`,
    values: [JSON.stringify(events.map(messageRow))],
  });
}

function messageRow(event: Envelope) {
  return {
    event_id: event.eventId,
    event_type: event.eventType,
    subject: event.subject,
    aggregate_key: event.aggregateKey,
    occurred_at: event.occurredAt,
    headers: event.headers,
    payload: Buffer.from(event.payload).toString("base64"),
  };
}

/**
 * Makes the consumer known, and gives it what was published before. The lock waits for every publish that may not see
 * the new subscription, and holds up those to come until they can: PostgreSQL takes a statement's locks before its
 * snapshot. So each message is either found here or delivered by its publisher; none by neither, none by both.
 */
export async function insertSubscription(db: Db, consumer: string, subjects: readonly string[]): Promise<void> {
  const known = await db.query<{ subject: string }>(`select subject from bus_subscriptions where consumer = $1`, [
    consumer,
  ]);
  const missing = subjects.filter((subject) => !known.rows.some((row) => row.subject === subject));
  if (missing.length === 0) return;
  await transaction(db, async (tx) => {
    await tx.query(`lock table bus_subscriptions in access exclusive mode`);
    const { rows } = await tx.query<{ subject: string }>(
      `insert into bus_subscriptions (consumer, subject) select $1, unnest($2::text[])
       on conflict do nothing returning subject`,
      [consumer, missing],
    );
    await tx.query(
      `insert into bus_deliveries (consumer, message_id, aggregate_key)
       select $1, message_id, aggregate_key from bus_messages where subject = any($2::text[]) order by message_id`,
      [consumer, rows.map((row) => row.subject)],
    );
  });
}

/** Settings of the server under which a message that was answered "stored" can be lost with the machine. */
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
      finished: "not exists (select from bus_deliveries d where d.message_id = bus_messages.message_id)",
      since: "published_at",
      keepMs,
    },
  ];
}
