/** The look-ups in the kernel's own tables, the same for every service. */
import pg from "pg";
import { inboxDlqClaims } from "../inbox/store.ts";
import { outboxClaims } from "../outbox/store.ts";
import { claimEntrySql, entitlementName, entriesSql } from "./entries-sql.ts";
import type { LinkKind, Lookup } from "./index.ts";
import { keyLookup } from "./key-lookup.ts";

/** Which of the kernel's tables a service uses. */
export interface KernelTables {
  readonly emits: boolean;
  /** The name of its consumer. */
  readonly consumer?: string;
  /** Its own tables with dead letters, whose redrives are kept, and what their keys are. */
  readonly redriven?: readonly { readonly table: string; readonly by: LinkKind }[];
}

export function kernelLookups({ emits, consumer, redriven = [] }: KernelTables): readonly Lookup[] {
  const tables = [
    ...redriven,
    ...(emits ? [{ table: outboxClaims.table.table, by: "event" as const }] : []),
    ...(consumer === undefined ? [] : [{ table: inboxDlqClaims.table.table, by: "dead-event" as const }]),
  ];
  return [
    ...(emits ? [keyLookup, eventLookup, traceLookup, requestLookup, aggregateLookup] : []),
    ...(consumer === undefined ? [] : inboxLookups(pg.escapeLiteral(consumer))),
    ...tables.map(redrivesLookup),
  ];
}

const waiting = "e.published_at is null";

/** The first unfinished event of the aggregate, if it is another one. `next_retry_at` of a dead event is when it failed last. */
const blockedBySql = `case when ${waiting} then (
  select jsonb_build_object('kind', 'event', 'id', b.event_id, 'state', b.status, 'error', b.last_error,
           'since', to_char(greatest(b.created_at, b.next_retry_at) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           'dead_letter', case b.status when 'FAILED' then jsonb_build_object('table', 'outbox_events', 'id', b.event_id) end)
    from outbox_events b
   where b.aggregate_key = e.aggregate_key and b.position < e.position and b.published_at is null
   order by b.position limit 1) end`;

const eventColumns = {
  id: "e.event_id",
  traceId: "e.headers ->> 'trace_id'",
  detail: "e.event_type || ' on ' || e.subject || ', version ' || e.version || ' of ' || e.aggregate_key",
  links: [
    ["event", "e.event_id"],
    ["user", "jsonb_path_query_array(e.payload, '$.**.user_id')"],
    ["reservation", "e.payload -> 'reservation_id'"],
    ["ticket", "jsonb_path_query_array(e.payload, '$.**.ticket_id')"],
    ["match", "e.payload -> 'match_id'"],
    ["order", "e.payload -> 'client_order_id'"],
    ["entitlement", entitlementName("e.payload")],
    ["trace", "e.headers -> 'trace_id'"],
  ],
} as const;

/** The event, and its publication as an entry of its own. `from` has the rows as `e`. */
const eventEntries = (from: string) =>
  [
    entriesSql({
      ...eventColumns,
      ...claimEntrySql(outboxClaims.table, "e"),
      kind: "'event'",
      at: "e.created_at",
      blockedBy: blockedBySql,
      from,
    }),
    entriesSql({
      id: "e.event_id",
      kind: "'published'",
      at: "e.published_at",
      detail: "'to ' || e.subject",
      traceId: eventColumns.traceId,
      from: `(select * from ${from}) e where e.published_at is not null`,
    }),
  ].join("\nunion all\n");

const eventLookup: Lookup = {
  by: "event",
  shape: "uuid",
  sql: eventEntries("outbox_events e where e.event_id = $1::uuid"),
};

/** An event's time differs at most this much from the time that another record has for it, because clocks differ. */
const aroundMs = 5_000;
const eventsMax = 20;

/**
 * Event ids begin with their time in milliseconds, so the events of a moment are a short range of the primary key. `ms` and the
 * condition on `o` are SQL.
 */
const eventsAround = (ms: string, condition: string): string => `(
    select o.* from outbox_events o
     where o.event_id >= ${uuidAt(`${ms} - ${aroundMs}`)} and o.event_id <= ${uuidAt(`${ms} + ${aroundMs}`)}
       and ${condition}
     order by o.event_id limit ${eventsMax}) e`;

/** The smallest UUID v7 of a time. */
const uuidAt = (ms: string): string => `rpad(lpad(to_hex(greatest(0, ${ms})), 12, '0'), 32, '0')::uuid`;

/**
 * A trace id of ours begins with its time too (packages/service/trace-ids.ts). A trace that another system began is not found by its
 * id. An index by trace would cost every event an entry at each of its three writes.
 */
const traceLookup: Lookup = {
  by: "trace",
  shape: "hex32",
  sql: eventEntries(
    eventsAround("('x' || substr($1, 1, 12))::bit(48)::bigint", "o.headers ->> 'trace_id' = lower($1)"),
  ),
};

const digits = "replace($1, '-', '')";

/**
 * The id of a request is that of the trace that it begins, in the form of a UUID (packages/http/request-telemetry.ts). In a trace of
 * another system, events carry the id beside it.
 */
const requestLookup: Lookup = {
  by: "request",
  shape: "uuid",
  sql: eventEntries(
    eventsAround(
      `('x' || substr(${digits}, 1, 12))::bit(48)::bigint`,
      `(o.headers ->> 'trace_id' = ${digits} or o.headers ->> 'request_id' = $1)`,
    ),
  ),
};

const aggregate = "regexp_replace($1, '@[0-9]+$', '')";

/** The events that an aggregate emitted at a time ("<aggregate key>@<ms>"), and its unpublished ones. */
const aggregateLookup: Lookup = {
  by: "aggregate",
  shape: "aggregate",
  sql: [
    eventEntries(eventsAround("substring($1 from '@([0-9]+)$')::bigint", `o.aggregate_key = ${aggregate}`)),
    eventEntries(`(
    select o.* from outbox_events o
     where o.aggregate_key = ${aggregate} and o.published_at is null
     order by o.position limit ${eventsMax}) e`),
  ].join("\nunion all\n"),
};

const inboxLookups = (consumer: string): readonly Lookup[] => [
  {
    by: "event",
    shape: "uuid",
    sql: [
      entriesSql({
        kind: "'processed'",
        id: "p.event_id",
        at: "p.processed_at",
        state: "p.result",
        process: `${consumer}::text`,
        detail: `'by consumer ' || ${consumer}`,
        from: `processed_events p where p.consumer = ${consumer} and p.event_id = $1::uuid`,
      }),
      entriesSql({
        kind: "'attempt'",
        id: "a.event_id",
        at: "a.updated_at",
        attempt: "a.attempt_count",
        error: "a.last_error",
        process: `${consumer}::text`,
        detail: `'consumer ' || ${consumer} || ' tried to process it'`,
        from: `inbox_attempts a where a.consumer = ${consumer} and a.event_id = $1::uuid`,
      }),
      deadEvents(`r.consumer = ${consumer} and r.event_id = $1::uuid`),
    ].join("\nunion all\n"),
  },
  { by: "dead-event", shape: "number", sql: deadEvents(`r.consumer = ${consumer} and r.dlq_id = $1::bigint`) },
];

const deadEvents = (where: string): string =>
  entriesSql({
    ...claimEntrySql(inboxDlqClaims.table, "r"),
    kind: "'dead'",
    id: "r.dlq_id",
    at: "r.dead_at",
    traceId: "r.headers ->> 'trace_id'",
    detail: "r.event_type || ' at consumer ' || r.consumer",
    links: [
      ["event", "r.event_id"],
      ["dead-event", "r.dlq_id::text"],
    ],
    from: `inbox_dlq r where ${where}`,
  });

const redrivesMax = 10;

/** The redrives and the discard of a row, with who and why. */
const redrivesLookup = ({ table, by }: { readonly table: string; readonly by: LinkKind }): Lookup => ({
  by,
  shape: by === "dead-event" ? "number" : "uuid",
  sql: `select * from (${entriesSql({
    kind: "r.action",
    id: "r.of_key",
    at: "r.redriven_at",
    process: "r.redriven_by",
    attempt: "r.attempt_count",
    error: "r.last_error",
    detail: "r.reason",
    from: `(select * from redrives where of_table = ${pg.escapeLiteral(table)} and of_key = $1
             order by redrive_id desc limit ${redrivesMax}) r`,
  })}) found`,
});
