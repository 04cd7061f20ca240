/**
 * Dead letters: jobs and events that are retried no more, for operators to list, inspect, redrive and discard.
 *
 * Every table with dead letters has the same interface, on the command line and over HTTP. A redrive or discard records who asked
 * and why in the statement that does it, and one of them takes effect once if several operators ask at the same time.
 */
import pg from "pg";
import type { Claims, RedriveRequest } from "../claims/index.ts";
import { type Db, type Queryable, rfc3339Sql, type Tx, transaction } from "../db/index.ts";

/** A table with dead letters. Conditions and expressions are SQL over the row `r`. */
export interface DeadLettersSpec {
  /** The claims that redrive and discard the rows. */
  readonly claims: Pick<Claims<object>, "table" | "redrive" | "discard">;
  /** A FROM item: "outbox_events r". */
  readonly from: string;
  /** True for rows that are dead now. It needs an index that ends with `cursor`. */
  readonly isDead: string;
  /** The queue whose rows this service may see and redrive; by default all. */
  readonly queue?: string;
  /** The row's key in the table of `claims`. */
  readonly id: string;
  /** An increasing bigint that never changes for a row; lists are paged by it. */
  readonly cursor: string;
  /** The subject of the row: a user, an aggregate. */
  readonly about: string;
  /** When the row died, or was created if that is not known. */
  readonly since: string;
  /** When the row died, also if it was redriven before; by default `since`. */
  readonly diedAt?: string;
  /** A select list of further columns, in lists and in `show`. */
  readonly summary?: string;
  /** A select list of the columns that only `show` adds. */
  readonly detail: string;
  /** True for rows of the user in this parameter ("$5"). Without it, no row is found by its user. */
  readonly isOfUser?: (parameter: string) => string;
  /** Further changes in the transaction of a redrive. */
  readonly onRedriven?: (tx: Tx, ids: readonly string[]) => Promise<void>;
  /** Further changes in the transaction of a discard. */
  readonly onDiscarded?: (tx: Tx, ids: readonly string[]) => Promise<void>;
}

/** The dead letters of one table. `Summary` and `Detail` are what the spec's further columns return. */
export interface DeadLetters<Detail extends object = object, Summary extends object = object> {
  readonly name: string;
  /** Whether a text can be an ID of this table. */
  isId(text: string): boolean;
  /** Lists dead letters, oldest first. */
  list(db: Queryable, page: DeadLetterPage): Promise<(DeadLetter & Summary)[]>;
  /** The number of dead letters; with `max`, counted up to it. */
  count(db: Queryable, max?: number): Promise<number>;
  /** The number of dead letters that match, counted up to `max`, and the highest cursor of all dead letters; null if there is none. */
  preview(
    db: Queryable,
    filter: DeadLetterFilter,
    max: number,
  ): Promise<{ readonly count: number; readonly through: string | null }>;
  /** The oldest `max` dead letters by error, the most frequent error first. */
  group(db: Queryable, max: number): Promise<DeadLetterGroup[]>;
  /** Returns a row and its redrives, also if it is no longer dead; undefined if it does not exist. */
  show(db: Queryable, id: string): Promise<(DeadLetterDetail & Summary & Detail) | undefined>;
  /** Makes dead letters ready again. Returns the IDs of those that were dead. Wake the workers afterwards. */
  redrive(db: Db | Tx, ids: readonly string[], request: RedriveRequest): Promise<string[]>;
  /** Deletes dead letters: they are never tried again. Returns the IDs of those that were dead. Wake the workers afterwards. */
  discard(db: Db | Tx, ids: readonly string[], request: RedriveRequest): Promise<string[]>;
  /** Returns a discarded row as it was, and its redrives; undefined if it was not discarded. */
  showDiscarded(db: Queryable, id: string): Promise<DiscardedLetter | undefined>;
}

export interface DiscardedLetter {
  readonly id: string;
  readonly discarded_at: string;
  readonly discarded_by: string;
  readonly reason: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  /** When its copy was removed by age, so that few columns are left. */
  readonly copy_removed_at: string | null;
  /** The columns of the row. */
  readonly row: Readonly<Record<string, unknown>>;
  /** Newest first. */
  readonly redrives: Redrive[];
}

export interface DeadLetterFilter {
  readonly eventType?: string;
  /** A substring of `last_error`. */
  readonly error?: string;
  readonly user?: string;
  /** The `group` of the row. */
  readonly group?: string;
}

export interface DeadLetterPage extends DeadLetterFilter {
  /** The `cursor` of the last row seen. */
  readonly after?: string;
  /** No row with a higher `cursor`. */
  readonly through?: string;
  /** No row that died at this time or later. */
  readonly diedBefore?: string;
  readonly limit: number;
}

/** Dead letters whose errors differ in numbers and ids only. */
export interface DeadLetterGroup {
  readonly group: string;
  /** The first line of the error, with # for numbers and ids. */
  readonly error: string;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
  /** The newest of them. */
  readonly example_id: string;
  readonly example: string | null;
}

export interface DeadLetter {
  readonly id: string;
  readonly event_type: string;
  readonly about: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  /** RFC 3339, UTC. */
  readonly since: string;
  /** The same for rows whose errors differ in numbers and ids only. */
  readonly group: string;
  readonly cursor: string;
}

export interface DeadLetterDetail extends Omit<DeadLetter, "cursor"> {
  /** False if it was redriven. */
  readonly dead: boolean;
  /** Newest first. */
  readonly redrives: Redrive[];
}

/** Builds the operator view of a table's dead letters. */
export function createDeadLetters<Detail extends object, Summary extends object = object>(
  spec: DeadLettersSpec,
): DeadLetters<Detail, Summary> {
  const { claims, from, isDead, queue, id, cursor, about, since, summary, detail, onRedriven } = spec;
  const { isOfUser = () => "false", onDiscarded, diedAt = since } = spec;
  const { table, keyType } = claims.table;
  const isVisible = queue === undefined ? "true" : `r.${claims.table.queue} = ${pg.escapeLiteral(queue)}`;
  const columns = `${id}::text as id, r.event_type, ${about} as about, r.attempt_count, r.last_error,
    ${rfc3339Sql(since)} as since, ${errorGroup} as "group"${summary ? `, ${summary}` : ""}`;
  const matches = `${isVisible} and ${isDead} and ${cursor} > $1
   and ($2::text is null or r.event_type = $2)
   and ($3::text is null or strpos(r.last_error, $3) > 0)
   and ($5::text is null or (${isOfUser("$5")}))
   and ($6::text is null or ${errorGroup} = $6)
   and ($7::bigint is null or ${cursor} <= $7)
   and ($8::timestamptz is null or ${diedAt} < $8)`;
  const listSql = `
select ${columns}, ${cursor}::text as cursor from ${from}
 where ${matches}
 order by ${cursor} limit $4`;
  const previewSql = `
select (select count(*) from (select from ${from} where ${matches} limit $4) m)::int as count,
       (select max(${cursor}) from ${from} where ${isVisible} and ${isDead})::text as through`;
  // Equal errors are counted first: the pattern of an error costs more than the rest of the row.
  const groupSql = `
select md5(error) as "group", error, sum(count)::int as count, ${rfc3339Sql("min(first_at)")} as first_at,
       ${rfc3339Sql("max(last_at)")} as last_at, (array_agg(id order by cursor desc))[1] as example_id,
       (array_agg(last_error order by cursor desc))[1] as example
  from (select ${errorPattern} as error, r.*
          from (select last_error, count(*) as count, min(since) as first_at, max(since) as last_at, max(cursor) as cursor,
                       (array_agg(id order by cursor desc))[1] as id
                  from (select ${id}::text as id, ${cursor} as cursor, ${since} as since, r.last_error
                          from ${from} where ${isVisible} and ${isDead} order by ${cursor} limit $1) d
                 group by last_error) r) e
 group by error order by count desc, error limit ${groupsMax}`;
  const countSql = `select count(*)::int as dead from (select from ${from} where ${isVisible} and ${isDead} limit $1) r`;
  const showSql = `select ${columns}, (${isDead}) as dead, ${detail} from ${from} where ${isVisible} and ${id} = $1`;

  return {
    name: table,
    isId: (text) => idPatterns[keyType].test(text),

    async list(db, { after = "0", through = null, diedBefore = null, limit, ...filter }) {
      const page = { after, through, diedBefore, limit };
      return (await db.query<DeadLetter & Summary>(listSql, parameters(page, filter))).rows;
    },

    async preview(db, filter, max) {
      const page = { after: "0", through: null, diedBefore: null, limit: max };
      const { rows } = await db.query<{ count: number; through: string | null }>(previewSql, parameters(page, filter));
      return rows[0] ?? { count: 0, through: null };
    },

    async group(db, max) {
      return (await db.query<DeadLetterGroup>(groupSql, [max])).rows;
    },

    async count(db, max) {
      return (await db.query<{ dead: number }>(countSql, [max ?? null])).rows[0]?.dead ?? 0;
    },

    async show(db, key) {
      const [row] = (await db.query<Omit<DeadLetterDetail, "redrives"> & Summary & Detail>(showSql, [key])).rows;
      return row && { ...row, redrives: await selectRedrives(db, { table, key: row.id }) };
    },

    redrive: (db, ids, request) =>
      inTransaction(db, async (tx) => {
        const redriven = await claims.redrive(tx, ids, { ...request, ...(queue !== undefined && { queue }) });
        if (redriven.length > 0) await onRedriven?.(tx, redriven);
        return redriven;
      }),

    discard: (db, ids, request) =>
      inTransaction(db, async (tx) => {
        const discarded = await claims.discard(tx, ids, { ...request, ...(queue !== undefined && { queue }) });
        if (discarded.length > 0) await onDiscarded?.(tx, discarded);
        return discarded;
      }),

    async showDiscarded(db, key) {
      const { rows } = await db.query<Omit<DiscardedLetter, "redrives">>(
        `select of_key as id, ${rfc3339Sql("redriven_at")} as discarded_at, redriven_by as discarded_by, reason,
                attempt_count, last_error, ${rfc3339Sql("copy_removed_at")} as copy_removed_at, discarded as row
           from redrives where of_table = $1 and of_key = $2 and action = 'discard'
             and ($3::text is null or discarded ->> $4 = $3)
          order by redrive_id desc limit 1`,
        [table, key, queue ?? null, claims.table.queue ?? ""],
      );
      return rows[0] && { ...rows[0], redrives: await selectRedrives(db, { table, key: rows[0].id }) };
    },
  };
}

interface PageParameters {
  readonly after: string;
  readonly through: string | null;
  readonly diedBefore: string | null;
  readonly limit: number;
}

const parameters = (
  { after, through, diedBefore, limit }: PageParameters,
  { eventType = null, error = null, user = null, group = null }: { [name in keyof DeadLetterFilter]: string | null },
): unknown[] => [after, eventType, error, limit, user, group, through, diedBefore];

/** In the caller's transaction, or in one of its own. */
const inTransaction = <T>(db: Db | Tx, work: (tx: Tx) => Promise<T>): Promise<T> =>
  "totalCount" in db ? transaction(db, work) : work(db);

// Errors repeat themselves with other ids, sequences of digits and addresses.
const errorPattern = `regexp_replace(left(split_part(coalesce(r.last_error, ''), E'\n', 1), 300),
  '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|[0-9]+', '#', 'g')`;
const errorGroup = `md5(${errorPattern})`;
// More than an operator reads.
const groupsMax = 100;

const idPatterns = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  bigint: /^[1-9]\d{0,17}$/,
  text: /^.{1,255}$/,
};

/** One redrive: who, why, and the row's state before it. */
export interface Redrive {
  readonly redriven_at: string;
  readonly redriven_by: string;
  readonly reason: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
}

// More of them do not help an operator; the table has them all.
const redrivesMax = 20;

/** The latest redrives of one row, newest first. */
async function selectRedrives(
  db: Queryable,
  { table, key }: { readonly table: string; readonly key: string },
): Promise<Redrive[]> {
  const { rows } = await db.query<Redrive>(
    `select ${rfc3339Sql("redriven_at")} as redriven_at, redriven_by, reason, attempt_count, last_error
       from redrives where of_table = $1 and of_key = $2 and action = 'redrive'
      order by redrive_id desc limit ${redrivesMax}`,
    [table, key],
  );
  return rows;
}
