/**
 * Rows that were given up, for the people who run a service: to list, to look at, and to let be tried again.
 *
 * One face for every table that has such rows, so that an operator meets the same words whatever was given up, on the
 * command line and on the ops listener. A redrive keeps who asked for it and why, in the statement that does it, and
 * takes effect once however many people ask at the same time.
 */
import type { Claims, RedriveRequest } from "../claims/index.ts";
import { type Db, type Queryable, type Tx, transaction, utcText } from "../db/index.ts";

/** A table with dead rows, described in SQL about the row `r`. A further table is a description, not a copy. */
export interface DeadTableDescription {
  /** Its rows are redriven by the claim engine, and named after this table and its key. */
  readonly claims: Pick<Claims<object>, "table" | "redrive">;
  /** Where the dead rows are read: "outbox_events r". */
  readonly from: string;
  /** True of rows that are dead now; met by the index that `cursor` is the last column of. */
  readonly isDead: string;
  /** True of rows that this service may touch at all, where that is not every row. */
  readonly isOurs?: string;
  /** The row's key in the table of `claims`. */
  readonly id: string;
  /** A bigint that grows, and never changes for a row: pages go by it. */
  readonly cursor: string;
  /** What the row is about: a user, an aggregate. */
  readonly about: string;
  /** Since when it exists, or is dead where that is known. */
  readonly since: string;
  /** What `show` adds: a select list. */
  readonly whole: string;
  /** What else a redrive changes, in its transaction. */
  readonly whenRedriven?: (tx: Tx, ids: readonly string[]) => Promise<void>;
}

/** `Whole` is what `whole` selects. */
export interface DeadTable<Whole extends object = object> {
  readonly name: string;
  /** Whether this text can be an id of this table at all. */
  isId(text: string): boolean;
  /** Those that are dead now, oldest first. */
  list(db: Queryable, page: DeadPage): Promise<DeadRow[]>;
  /** How many are dead now. */
  count(db: Queryable): Promise<number>;
  /** One row with all that is known of it and who redrove it, whatever became of it since; undefined: there is none. */
  show(db: Queryable, id: string): Promise<(DeadRowWhole & Whole) | undefined>;
  /** Lets them be tried again; returns the ids of those that were dead. Workers are to be woken after it. */
  redrive(db: Db, ids: readonly string[], request: RedriveRequest): Promise<string[]>;
}

export interface DeadPage {
  /** The `cursor` of the last row seen. */
  readonly after?: string;
  readonly limit: number;
  readonly eventType?: string;
  /** A part of `last_error`. */
  readonly error?: string;
}

export interface DeadRow {
  readonly id: string;
  readonly event_type: string;
  readonly about: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
  /** RFC 3339, UTC. */
  readonly since: string;
  readonly cursor: string;
}

export interface DeadRowWhole extends Omit<DeadRow, "cursor"> {
  /** Newest first. */
  readonly redrives: Redrive[];
}

export function deadTable<Whole extends object>(description: DeadTableDescription): DeadTable<Whole> {
  const { claims, from, isDead, isOurs = "true", id, cursor, about, since, whole, whenRedriven } = description;
  const { table, keyType } = claims.table;
  const columns = `${id}::text as id, r.event_type, ${about} as about, r.attempt_count, r.last_error,
    ${utcText(since)} as since`;
  const listText = `
select ${columns}, ${cursor}::text as cursor from ${from}
 where ${isOurs} and ${isDead} and ${cursor} > $1
   and ($2::text is null or r.event_type = $2)
   and ($3::text is null or strpos(r.last_error, $3) > 0)
 order by ${cursor} limit $4`;
  const countText = `select count(*)::int as dead from ${from} where ${isOurs} and ${isDead}`;
  const showText = `select ${columns}, ${whole} from ${from} where ${isOurs} and ${id} = $1`;

  return {
    name: table,
    isId: (text) => idPatterns[keyType].test(text),

    async list(db, { after = "0", limit, eventType = null, error = null }) {
      return (await db.query<DeadRow>(listText, [after, eventType, error, limit])).rows;
    },

    async count(db) {
      return (await db.query<{ dead: number }>(countText)).rows[0]?.dead ?? 0;
    },

    async show(db, key) {
      const [found] = (await db.query<Omit<DeadRowWhole, "redrives"> & Whole>(showText, [key])).rows;
      return found && { ...found, redrives: await redrivesOf(db, { table, key: found.id }) };
    },

    redrive: (db, ids, request) =>
      transaction(db, async (tx) => {
        const redriven = await claims.redrive(tx, ids, request);
        if (redriven.length > 0) await whenRedriven?.(tx, redriven);
        return redriven;
      }),
  };
}

const idPatterns = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  bigint: /^[1-9]\d{0,17}$/,
  text: /^.{1,255}$/,
};

/** One redrive: who asked for it and why, and what the row had come to by then. */
export interface Redrive {
  readonly redriven_at: string;
  readonly redriven_by: string;
  readonly reason: string;
  readonly attempt_count: number;
  readonly last_error: string | null;
}

// A row that was redriven more often has shown what it will do; the table has them all.
const redrivesShownMax = 20;

/** The latest redrives of one row, newest first. */
async function redrivesOf(
  db: Queryable,
  { table, key }: { readonly table: string; readonly key: string },
): Promise<Redrive[]> {
  const { rows } = await db.query<Redrive>(
    `select ${utcText("redriven_at")} as redriven_at, redriven_by, reason, attempt_count, last_error
       from redrives where of_table = $1 and of_key = $2
      order by redrive_id desc limit ${redrivesShownMax}`,
    [table, key],
  );
  return rows;
}
