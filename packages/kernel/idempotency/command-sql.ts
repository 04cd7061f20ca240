/**
 * A hot command as one statement and one commit: it looks up keys, passes new requests to the service's own change, appends
 * events and stores responses. The service writes its change only.
 *
 * If another process is inserting one of the keys, the unique index fails the whole statement with 23505, and the batcher
 * runs the batch again request by request. Every lookup is a LATERAL … LIMIT 1, so that it stays an index probe whatever
 * the statistics say (docs/adr/0003).
 */
import { type Db, recordsSql, runStatement, type Tx } from "../db/index.ts";
import { idempotencySetting } from "../db/pool.ts";
import { type EventsSql, insertEventsSql } from "../outbox/index.ts";
import type { CommandResponse, IdempotencyKey } from "./once.ts";

export interface CommandSpec<Refusal extends string = never> {
  /** The name of the prepared statement. */
  readonly name: string;
  /** The columns of a request without its key: "user_id text, amount bigint". */
  readonly columns: string;
  /** Columns that are read for every new request `r`, from what `join` adds. */
  readonly lookup?: { readonly select: string; readonly join: string };
  /** Conditions under which a new request is refused, over the columns of the request and of the lookup. */
  readonly refusals?: Readonly<Record<Refusal, string>>;
  /** A text expression for the `detail` of a refused request. */
  readonly refusalDetail?: string;
  /**
   * The service's own CTEs. They read `accepted`, the requests to execute with their `ordinal`. One of them is
   * `results as materialized`: all columns of `accepted` with `response_status` and `response_body` (bytea).
   */
  readonly change: string;
  /** The event of each row of `results`. */
  readonly events?: Omit<EventsSql, "from" | "republish">;
}

export interface Command<Request extends object, Refusal extends string = never> {
  /** The statement, for tests of its plan. */
  readonly sql: string;
  /** Executes a batch. Returns the results in input order. No two requests may have the same key. */
  run(db: Db | Tx, requests: readonly (Request & KeyColumns)[]): Promise<CommandResult<Refusal>[]>;
}

/** `conflict`: the key was first sent with another body. A conflict or a refusal changes and stores nothing. */
export type CommandResult<Refusal extends string = never> =
  | (CommandResponse & { readonly result: "first" | "replayed" })
  | { readonly result: "conflict" }
  /** `detail` is set if the command has a `refusalDetail`. */
  | (Refusal extends string ? { readonly result: Refusal; readonly detail?: string } : never);

export interface KeyColumns {
  readonly scope: string;
  readonly idem_key: string;
  /** Hex. */
  readonly request_hash: string;
}

/** The key of a request, as `run` takes it. */
export const toKeyColumns = ({ scope, key, requestHash }: IdempotencyKey): KeyColumns => ({
  scope,
  idem_key: key,
  request_hash: requestHash.toString("hex"),
});

const keyTypes = "scope text, idem_key text, request_hash text";
const contentType = "application/json; charset=utf-8";

/** How long a key is kept, as an interval. A pool that `openDb` did not open has no setting. */
export const keyTtlSql = `coalesce(current_setting('${idempotencySetting}', true), '86400000')::float8 * interval '1 millisecond'`;

/** Builds the statement of a hot command. Run it through a batcher, so that concurrent requests share a commit. */
export function command<Request extends object, Refusal extends string = never>(
  spec: CommandSpec<Refusal>,
): Command<Request, Refusal> {
  const sql = commandSql(spec);
  return {
    sql,
    async run(db, requests) {
      const { rows } = await runStatement<CommandResult<Refusal> & { ordinal: number }>(db, {
        name: spec.name,
        text: sql,
        values: [JSON.stringify(requests)],
      });
      return rows.map(({ ordinal: _, ...result }) => result as CommandResult<Refusal>);
    },
  };
}

function commandSql(spec: CommandSpec<string>): string {
  const { columns, lookup, refusals = {}, refusalDetail, change, events } = spec;
  const conditions = Object.values(refusals);
  // With `coalesce` the planner estimates that half of the requests are refused. For a bare condition it may estimate all,
  // and would then join the batch with its results row by row.
  const isRefused = `coalesce(${conditions.join(" or ") || "null"}, false)`;
  const names = Object.entries(refusals).map(([name, condition]) => `when ${condition} then '${name}'`);
  const detail = (value: string) => (refusalDetail === undefined ? "" : `, ${value} as detail`);
  const refusedSql = `union all
select ordinal::int, case ${names.join(" ")} end, null, null, null, false${detail(refusalDetail ?? "")}
  from new_requests where ${isRefused}`;
  return `
with requests as materialized (select * from ${recordsSql("$1", `${keyTypes}, ${columns}`)}),
existing_keys as materialized (
  select r.ordinal, k.*, k.request_hash = decode(r.request_hash, 'hex') as same_request
    from requests r cross join lateral (
           select k.ctid as key_row, k.expires_at <= statement_timestamp() as expired, k.request_hash,
                  k.response_status, k.response_content_type, k.response_body
             from idempotency_keys k where k.scope = r.scope and k.idem_key = r.idem_key limit 1) k
),
new_requests as materialized (
  select r.*${lookup ? `, ${lookup.select}` : ""} from requests r ${lookup?.join ?? ""}
   where r.ordinal not in (select ordinal from existing_keys where not expired)
),
accepted as not materialized (select * from new_requests where not ${isRefused}),
delete_expired_keys as (
  delete from idempotency_keys where ctid = any(array(select key_row from existing_keys where expired)) returning scope
),
${change},
${events ? `insert_events as (\n  ${insertEventsSql({ ...events, from: "results order by ordinal" })}\n),` : ""}
insert_responses as (
  ${insertResponsesSql({
    ...storedColumns,
    requestHash: "decode(request_hash, 'hex')",
    contentType: `'${contentType}'`,
    // Makes the deletion of expired keys run first.
    from: "results where (select count(*) from delete_expired_keys) >= 0",
  })}
)
select ordinal::int, 'first' as result, response_status as status, '${contentType}' as "contentType",
       response_body as body, false as replayed${detail("null::text")}
  from results
union all
select ordinal::int, case when same_request then 'replayed' else 'conflict' end,
       response_status, response_content_type, response_body, true${detail("null")}
  from existing_keys where not expired
${conditions.length > 0 ? refusedSql : ""}
order by ordinal`;
}

/** SQL expressions over a row of `from`. */
interface ResponsesSql {
  readonly from: string;
  readonly scope: string;
  readonly key: string;
  readonly requestHash: string;
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
}

const storedColumns = { scope: "scope", key: "idem_key", status: "response_status", body: "response_body" };

/** Sorted by key, so that two concurrent statements cannot deadlock. */
const insertResponsesSql = ({ from, scope, key, requestHash, status, contentType, body }: ResponsesSql): string => `
  insert into idempotency_keys
    (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
  select ${scope}, ${key}, ${requestHash}, ${status}, ${contentType}, ${body}, now() + ${keyTtlSql}
    from ${from} order by ${scope}, ${key}`;

/** A response to store under its key, for commands that decide in the process and write with one statement. */
export interface KeyedResponse extends Omit<CommandResponse, "replayed"> {
  readonly key: IdempotencyKey;
}

/** An INSERT of the responses in `parameter`, which `responseRows` encodes. */
export const insertResponseRowsSql = (parameter: string): string =>
  insertResponsesSql({
    ...storedColumns,
    requestHash: "decode(request_hash, 'hex')",
    contentType: "content_type",
    body: "convert_to(response_body, 'utf8')",
    from: recordsSql(parameter, `${keyTypes}, response_status smallint, content_type text, response_body text`),
  });

/** Encodes the parameter of `insertResponseRowsSql`. */
export const responseRows = (responses: readonly KeyedResponse[]): string =>
  JSON.stringify(
    responses.map(({ key, status, contentType: content_type, body }) => ({
      ...toKeyColumns(key),
      response_status: status,
      content_type,
      response_body: body.toString(),
    })),
  );

/**
 * A subquery for a LATERAL join that selects the stored response of a key: `request_hash`, `status`, `content_type` and
 * `body`, or no row. `scope` and `key` are SQL expressions.
 */
export const storedResponseSql = ({ scope, key }: { readonly scope: string; readonly key: string }): string => `
  select k.request_hash, k.response_status as status, k.response_content_type as content_type, k.response_body as body
    from idempotency_keys k
   where k.scope = ${scope} and k.idem_key = ${key} and k.expires_at > statement_timestamp()
   limit 1`;
