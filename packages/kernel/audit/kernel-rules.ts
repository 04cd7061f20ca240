/** The rules of the kernel's own tables, the same for every service. */
import pg from "pg";
import type { ClaimedTable } from "../claims/index.ts";
import { resolveColumns } from "../claims/table.ts";
import type { AuditSpec } from "./index.ts";

export interface KernelAudited {
  readonly emits: boolean;
  /** The name of its consumer. */
  readonly consumer?: string;
  /** Its own claimed tables. */
  readonly tables?: readonly ClaimedTable[];
}

/** Retries are due within minutes, so a row that is due later than this is an error. */
const dueWithin = "interval '7 days'";

export function kernelAudit({ emits, consumer, tables = [] }: KernelAudited): readonly AuditSpec[] {
  return [
    ...(emits ? [outboxAudit] : []),
    ...(consumer === undefined ? [] : [inboxAudit(pg.escapeLiteral(consumer))]),
    ...tables.map(claimedAudit),
  ];
}

/**
 * Whether an event `o` that meets the condition is in the outbox, or was discarded by an operator. Only for changes since `kept`,
 * because published events are removed by age.
 */
export const eventExists = (condition: string): string => `(
  exists (select from outbox_events o where ${condition})
  or exists (select from redrives d cross join lateral jsonb_populate_record(null::outbox_events, d.discarded) o
              where d.of_table = 'outbox_events' and d.action = 'discard' and ${condition}))`;

const outboxAudit: AuditSpec = {
  checked: { events: "outbox_events" },
  rules: {
    "events of an aggregate are published in their order": `
    select l.event_id::text as about, format('published before %s of %s, which is %s', e.event_id, e.aggregate_key, e.status) as detail
      from outbox_events e
      join outbox_events l on l.aggregate_key = e.aggregate_key and l.position > e.position
     where e.published_at is null and l.published_at is not null and l.version > e.version`,
    "versions of an aggregate rise with its events": `
    select event_id::text as about, format('version %s of %s after %s', version, aggregate_key, before) as detail
      from (select event_id, aggregate_key, version, lag(version) over (partition by aggregate_key order by position) as before
              from outbox_events) e
     where version <= before`,
    "every unfinished event is due": `
    select event_id::text as about, format('%s, due at %s', status, next_retry_at) as detail
      from outbox_events where status = 'PENDING' and next_retry_at > now() + ${dueWithin}`,
  },
};

const inboxAudit = (consumer: string): AuditSpec => ({
  checked: { "processed events": `processed_events where consumer = ${consumer}` },
  rules: {
    "every event that is marked dead has its dead letter": `
    select p.event_id::text as about, format('marked dead at %s', p.processed_at) as detail
      from processed_events p
     where p.consumer = ${consumer} and p.result = 'dead'
       and not exists (select from inbox_dlq q where q.consumer = p.consumer and q.event_id = p.event_id and q.status <> 'RESOLVED')
       and not exists (select from redrives d where d.of_table = 'inbox_dlq' and d.action = 'discard'
                          and d.discarded ->> 'event_id' = p.event_id::text)`,
    "no dead letter had its effect": `
    select q.event_id::text as about, format('dead letter %s is %s, and the event took effect at %s', q.dlq_id, q.status, p.processed_at) as detail
      from inbox_dlq q join processed_events p on p.consumer = q.consumer and p.event_id = q.event_id
     where q.consumer = ${consumer} and q.status <> 'RESOLVED' and p.result = 'effect'`,
  },
});

/** Holds for every claimed table: a ready row is due soon, and the lease of a claimed row expires soon. */
function claimedAudit(table: ClaimedTable): AuditSpec {
  const c = resolveColumns(table);
  const { ready, claimed } = table.states;
  return {
    checked: { [`rows of ${table.table}`]: table.table },
    rules: {
      [`every row of ${table.table} ends or is due`]: `
    select t.${table.key}::text as about, format('%s, due at %s, leased until %s', t.${c.status}, t.${c.dueAt}, t.${c.leaseUntil}) as detail
      from ${table.table} t
     where (t.${c.status} = '${ready}' and t.${c.dueAt} > now() + ${dueWithin})
        or (t.${c.status} = '${claimed}' and t.${c.leaseUntil} > now() + ${dueWithin})`,
    },
  };
}
