/** SQL that selects entries: one form for every table, so that a service states only its own columns. */
import type { ClaimedTable } from "../claims/index.ts";
import { resolveColumns } from "../claims/table.ts";
import { rfc3339Sql } from "../db/index.ts";
import type { LinkKind } from "./index.ts";

/** All values are SQL. A value that is left out is null. */
export interface EntriesSql {
  /** A FROM item with its conditions; $1 is the id that is looked up. It ends with a limit or finds one row. */
  readonly from: string;
  /** "'order'" */
  readonly kind: string;
  readonly id: string;
  /** A timestamptz. */
  readonly at?: string;
  readonly state?: string;
  readonly attempt?: string;
  readonly process?: string;
  readonly traceId?: string;
  readonly detail?: string;
  readonly error?: string;
  /** A timestamptz. */
  readonly nextRetryAt?: string;
  /** A jsonb object of the row that this one waits behind; null if it waits behind none. */
  readonly blockedBy?: string;
  /** A jsonb object `{table, id}`, if the row is dead. */
  readonly deadLetter?: string;
  /** Ids that the row names: of one kind, or several in a jsonb array. */
  readonly links?: readonly (readonly [kind: LinkKind, id: string])[];
}

/** A SELECT of entries. */
export function entriesSql(sql: EntriesSql): string {
  const { from, kind, id, at, state, attempt, process, traceId, detail, error, nextRetryAt } = sql;
  const { blockedBy, deadLetter, links = [] } = sql;
  const time = (value: string | undefined) => (value === undefined ? "null" : rfc3339Sql(value));
  const link = ([linkKind, linked]: readonly [string, string]) =>
    `jsonb_build_object('kind', '${linkKind}', 'id', ${linked})`;
  return `
select ${kind} as kind, (${id})::text as id, ${time(at)} as at, (${state ?? "null"})::text as state,
       (${attempt ?? "null"})::int as attempt, (${process ?? "null"})::text as process, (${traceId ?? "null"})::text as trace_id,
       (${detail ?? "null"})::text as detail, (${error ?? "null"})::text as error, ${time(nextRetryAt)} as next_retry_at,
       (${blockedBy ?? "null"})::jsonb as blocked_by, (${deadLetter ?? "null"})::jsonb as dead_letter,
       jsonb_build_array(${links.map(link).join(", ")}) as links
  from ${from}`;
}

/** The claim columns of the row `row` of a claimed table, as part of an entry. */
export function claimEntrySql(
  table: ClaimedTable,
  row: string,
): Required<Pick<EntriesSql, "state" | "attempt" | "process" | "error" | "nextRetryAt" | "deadLetter">> {
  const c = resolveColumns(table);
  const { ready, waiting = ready, dead } = table.states;
  const { key } = table;
  return {
    state: `${row}.${c.status}`,
    attempt: `${row}.${c.attempts}`,
    process: `${row}.${c.lockedBy}`,
    error: `${row}.${c.lastError}`,
    nextRetryAt: `case when ${row}.${c.status} in ('${ready}', '${waiting}') and ${row}.${c.attempts} > 0 then ${row}.${c.dueAt} end`,
    deadLetter: `case when ${row}.${c.status} = '${dead}' then jsonb_build_object('table', '${table.table}', 'id', ${row}.${key}::text) end`,
  };
}

/** A version of an entitlement, if the jsonb `body` is about one: "<user>/<product>@<version>". */
export const entitlementName = (body: string): string =>
  `(${body} ->> 'user_id') || '/' || (${body} ->> 'stock_keeping_unit') || '@' || (${body} ->> 'version')`;

/** The id by which the events are found that an aggregate emitted at a time. */
export const aggregateAt = (key: string, at: string): string =>
  `${key} || '@' || (extract(epoch from ${at}) * 1000)::bigint`;
