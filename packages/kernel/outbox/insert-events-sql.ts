/**
 * Events as a part of the service's own statement. The service describes the event; the kernel writes the row and the
 * fields that every event has. For a transaction of several statements there is `append`.
 */
import { randomUUIDv7 } from "node:crypto";
import { recordsSql } from "../db/index.ts";

/** One event for every row of `from`. Apart from `subject`, all values are SQL expressions over such a row. */
export interface EventsSql {
  /** Rows of one aggregate must come in the order of their versions: "results order by ordinal". */
  readonly from: string;
  readonly subject: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateKey: string;
  /** The aggregate's, after the change. */
  readonly version: string;
  readonly occurredAt: string;
  /** Trace context: `traceHeaders()` as jsonb. */
  readonly headers?: string;
  /** What the event says besides: field name to SQL expression. */
  readonly fields: Readonly<Record<string, string>>;
  /** The same; a field that is null is left out. Where there are such, that holds of every field. */
  readonly optionalFields?: Readonly<Record<string, string>>;
  /** An event with this id that was published before is published again; one that is still in the outbox stays as it is. */
  readonly republish?: boolean;
}

/** The text of an INSERT: a statement, or the body of a CTE. */
export function insertEventsSql(events: EventsSql): string {
  const { from, subject, eventId, eventType, aggregateKey, version, headers, republish } = events;
  if (!/^[a-z.]+$/.test(subject)) throw new Error(`"${subject}" cannot be a subject: use small letters and dots`);
  return `insert into outbox_events as o
    (event_id, event_type, subject, aggregate_key, version, ${headers ? "headers, " : ""}payload)
  select ${eventId}, ${eventType}, '${subject}', ${aggregateKey}, ${version}, ${headers ? `${headers}, ` : ""}
         ${payloadSql(events)}
    from ${from}${republish ? republishSql : ""}`;
}

function payloadSql({ eventId, eventType, occurredAt, version, headers, fields, optionalFields }: EventsSql): string {
  const envelope = {
    event_id: eventId,
    event_type: eventType,
    occurred_at: occurredAt,
    version: `(${version})::text`,
  };
  const traceId = headers && `${headers} -> 'trace_id'`;
  // One object and no concatenation: an event's payload is a good part of what a batch costs.
  if (optionalFields) {
    const all = { ...envelope, ...fields, ...optionalFields, ...(traceId && { trace_id: traceId }) };
    return `jsonb_strip_nulls(${objectSql(all)})`;
  }
  const trace = ` || case when ${headers} ? 'trace_id' then jsonb_build_object('trace_id', ${traceId}) else '{}' end`;
  return `${objectSql({ ...envelope, ...fields })}${headers ? trace : ""}`;
}

function objectSql(fields: Readonly<Record<string, string>>): string {
  return `jsonb_build_object(${Object.entries(fields)
    .map(([name, value]) => `'${name}', ${value}`)
    .join(", ")})`;
}

// Rows that retention has removed are inserted again.
const republishSql = `
  on conflict (event_id) do update
     set status = 'PENDING', published_at = null, attempt_count = 0, next_retry_at = now()
   where o.status = 'PUBLISHED'`;

export interface NewEvent {
  /** UUID v7; made here if not given. */
  readonly eventId?: string;
  readonly eventType: string;
  readonly subject: string;
  readonly aggregateKey: string;
  /** The aggregate's, after the change. */
  readonly version: bigint | number;
  /** JSON; 64-bit numbers as strings. */
  readonly payload: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** RFC 3339; the transaction's time if not given. */
  readonly occurredAt?: string;
}

const rowColumns = `event_id uuid, event_type text, subject text, aggregate_key text, version bigint, payload jsonb,
  headers jsonb, occurred_at timestamptz`;

/** The text of an INSERT of the events that `parameter` holds as `eventRows` writes them, in their order. */
export const insertEventRowsSql = (parameter: string): string => `
  insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, headers, occurred_at)
  select event_id, event_type, subject, aggregate_key, version, payload, headers, coalesce(occurred_at, now())
    from ${recordsSql(parameter, rowColumns)}
   order by ordinal`;

/** The parameter of `insertEventRowsSql`. `trace` is the trace context of all of them; their own headers win. */
export function eventRows(events: readonly NewEvent[], trace: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify(
    events.map((event) => ({
      event_id: event.eventId ?? randomUUIDv7(),
      event_type: event.eventType,
      subject: event.subject,
      aggregate_key: event.aggregateKey,
      version: event.version.toString(),
      payload: event.payload,
      headers: { ...trace, ...event.headers },
      occurred_at: event.occurredAt ?? null,
    })),
  );
}
