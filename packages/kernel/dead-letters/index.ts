/**
 * Dead letters: jobs and events that are retried no more, for operators to list, inspect and redrive.
 *
 * Every table with dead letters has the same interface, on the command line and over HTTP. A redrive records who asked and
 * why in the statement that does it, and takes effect once if several operators ask at the same time.
 */
import pg from "pg";
import type { Claims, RedriveRequest } from "../claims/index.ts";
import { type Db, type Queryable, rfc3339Sql, type Tx, transaction } from "../db/index.ts";

/** A table with dead letters. Conditions and expressions are SQL over the row `r`. */
export interface DeadLettersSpec {
  /** The claims that redrive the rows. */
  readonly claims: Pick<Claims<object>, "table" | "redrive">;
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
  /** A select list of further columns, in lists and in `show`. */
  readonly summary?: string;
  /** A select list of the columns that only `show` adds. */
  readonly detail: string;
  /** Further changes in the transaction of a redrive. */
  readonly onRedriven?: (tx: Tx, ids: readonly string[]) => Promise<void>;
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
  /** Returns a row and its redrives, also if it is no longer dead; undefined if it does not exist. */
  show(db: Queryable, id: string): Promise<(DeadLetterDetail & Summary & Detail) | undefined>;
  /** Makes dead letters ready again. Returns the IDs of those that were dead. Wake the workers afterwards. */
  redrive(db: Db, ids: readonly string[], request: RedriveRequest): Promise<string[]>;
}

export interface DeadLetterPage {
  /** The `cursor` of the last row seen. */
  readonly after?: string;
  readonly limit: number;
  readonly eventType?: string;
  /** A substring of `last_error`. */
  readonly error?: string;
}

export interface DeadLetter {
  readonly id: string;
  readonly event_type: string;
  readonly about: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  /** RFC 3339, UTC. */
  readonly since: string;
  readonly cursor: string;
}

export interface DeadLetterDetail extends Omit<DeadLetter, "cursor"> {
  /** Newest first. */
  readonly redrives: Redrive[];
}

/** Builds the operator view of a table's dead letters. */
export function createDeadLetters<Detail extends object, Summary extends object = object>(
  spec: DeadLettersSpec,
): DeadLetters<Detail, Summary> {
  const { claims, from, isDead, queue, id, cursor, about, since, summary, detail, onRedriven } = spec;
  const { table, keyType } = claims.table;
  const isVisible = queue === undefined ? "true" : `r.${claims.table.queue} = ${pg.escapeLiteral(queue)}`;
  const columns = `${id}::text as id, r.event_type, ${about} as about, r.attempt_count, r.last_error,
    ${rfc3339Sql(since)} as since${summary ? `, ${summary}` : ""}`;
  const listSql = `
select ${columns}, ${cursor}::text as cursor from ${from}
 where ${isVisible} and ${isDead} and ${cursor} > $1
   and ($2::text is null or r.event_type = $2)
   and ($3::text is null or strpos(r.last_error, $3) > 0)
 order by ${cursor} limit $4`;
  const countSql = `select count(*)::int as dead from (select from ${from} where ${isVisible} and ${isDead} limit $1) r`;
  const showSql = `select ${columns}, ${detail} from ${from} where ${isVisible} and ${id} = $1`;

  return {
    name: table,
    isId: (text) => idPatterns[keyType].test(text),

    async list(db, { after = "0", limit, eventType = null, error = null }) {
      return (await db.query<DeadLetter & Summary>(listSql, [after, eventType, error, limit])).rows;
    },

    async count(db, max) {
      return (await db.query<{ dead: number }>(countSql, [max ?? null])).rows[0]?.dead ?? 0;
    },

    async show(db, key) {
      const [row] = (await db.query<Omit<DeadLetterDetail, "redrives"> & Summary & Detail>(showSql, [key])).rows;
      return row && { ...row, redrives: await selectRedrives(db, { table, key: row.id }) };
    },

    redrive: (db, ids, request) =>
      transaction(db, async (tx) => {
        const redriven = await claims.redrive(tx, ids, { ...request, ...(queue !== undefined && { queue }) });
        if (redriven.length > 0) await onRedriven?.(tx, redriven);
        return redriven;
      }),
  };
}

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

// More of them tell an operator nothing new; the table has them all.
const redrivesMax = 20;

/** The latest redrives of one row, newest first. */
async function selectRedrives(
  db: Queryable,
  { table, key }: { readonly table: string; readonly key: string },
): Promise<Redrive[]> {
  const { rows } = await db.query<Redrive>(
    `select ${rfc3339Sql("redriven_at")} as redriven_at, redriven_by, reason, attempt_count, last_error
       from redrives where of_table = $1 and of_key = $2
      order by redrive_id desc limit ${redrivesMax}`,
    [table, key],
  );
  return rows;
}
