/**
 * Records every state change of the claimed tables with a trigger: role, time and claim columns. A fence that fails may show only
 * here. Every process has its own database role, so the database, not the process, says who made a change.
 */
import type { Db } from "@todoke/kernel/db";

export interface WatchedTable {
  readonly table: string;
  readonly key: string;
  readonly states: { readonly ready: string; readonly claimed: string; readonly done: string; readonly dead: string };
  /** Additional transitions of this table: "failed>pending"; "pending>" if a row may be deleted while pending. */
  readonly more?: readonly string[];
  /** Most rows of one claim. */
  readonly batchMax: number;
}

/** The outbox of every service. */
export const outboxTable: WatchedTable = {
  table: "outbox_events",
  key: "event_id",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "PUBLISHED", dead: "FAILED" },
  // By the transaction that stores its message.
  more: ["PENDING>PUBLISHED"],
  batchMax: 200,
};

/** One change of one row. Times are milliseconds since 1970. */
export interface Transition {
  readonly id: number;
  readonly at: number;
  readonly tx: string;
  readonly table_name: string;
  readonly key: string;
  readonly role: string;
  readonly old_status: string | null;
  readonly new_status: string | null;
  readonly old_epoch: number | null;
  readonly new_epoch: number | null;
  readonly old_attempts: number | null;
  readonly new_attempts: number | null;
  readonly old_lease: number | null;
  readonly new_lease: number | null;
  readonly old_holder: string | null;
  readonly new_holder: string | null;
  readonly old_due: number | null;
}

export async function prepareWatch(db: Db): Promise<void> {
  await db.query(`
create schema chaos;
create table chaos.transitions (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  tx xid8 not null default pg_current_xact_id(),
  table_name text not null, key text not null, role text not null,
  old_status text, new_status text, old_epoch bigint, new_epoch bigint, old_attempts int, new_attempts int,
  old_lease timestamptz, new_lease timestamptz, old_holder text, new_holder text, old_due timestamptz);
create function chaos.note() returns trigger language plpgsql security definer set search_path = chaos as $$
declare
  was jsonb := case when tg_op = 'INSERT' then '{}' else to_jsonb(old) end;
  is_now jsonb := case when tg_op = 'DELETE' then '{}' else to_jsonb(new) end;
begin
  insert into transitions (table_name, key, role, old_status, new_status, old_epoch, new_epoch, old_attempts,
                           new_attempts, old_lease, new_lease, old_holder, new_holder, old_due)
  values (tg_table_name, coalesce(is_now ->> tg_argv[0], was ->> tg_argv[0]), session_user,
          was ->> 'status', is_now ->> 'status',
          (was ->> 'lease_epoch')::bigint, (is_now ->> 'lease_epoch')::bigint,
          coalesce(was ->> 'attempt_count', was ->> 'attempts')::int,
          coalesce(is_now ->> 'attempt_count', is_now ->> 'attempts')::int,
          (was ->> 'lease_until')::timestamptz, (is_now ->> 'lease_until')::timestamptz,
          was ->> 'locked_by', is_now ->> 'locked_by', (was ->> 'next_retry_at')::timestamptz);
  return null;
end $$;`);
}

export async function watch(db: Db, schema: string, { table, key }: WatchedTable): Promise<void> {
  await db.query(`create trigger chaos_note after update or delete on ${schema}.${table}
    for each row execute function chaos.note('${key}')`);
}

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

export const selectTransitions = `
select id::int, ${ms("at")} as at, tx::text, table_name, key, role, old_status, new_status, old_epoch::int, new_epoch::int,
       old_attempts, new_attempts, ${ms("old_lease")} as old_lease, ${ms("new_lease")} as new_lease,
       old_holder, new_holder, ${ms("old_due")} as old_due
  from chaos.transitions order by id`;

/** The process ID in \`locked_by\`: "entitlement relay@host:4711:a1b2c3". */
export const holderPid = (holder: string | null): number => Number(/:(\d+):[0-9a-f]+$/.exec(holder ?? "")?.[1] ?? 0);
