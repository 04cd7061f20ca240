/** The SQL of what one process at a time may have: the turn to refresh a session's tokens, and what is taken once. */
import { type Db, statement, type Tx } from "@todoke/kernel/db";
import type { OnceKind } from "./index.ts";
import { after, living } from "./postgres-statements.ts";

export interface TurnRow {
  readonly issuer: string;
  readonly sealed: Buffer;
  readonly epoch: number;
}

export interface TurnRequest {
  readonly sessionId: string;
  readonly idleMs: number;
  readonly holdMs: number;
}

/** A turn moves the due time to its own end: until then nothing is due, and if nobody lives to end it, it is due again. */
export async function takeTurn(db: Db, request: TurnRequest): Promise<TurnRow | undefined> {
  const { rows } = await statement<TurnRow>(db, {
    name: "take refresh",
    text: `update sessions set refresh_epoch = refresh_epoch + 1, refresh_due_at = ${after("$3")}
            where session_id = $1 and refresh_due_at <= statement_timestamp() and ${living("$2")}
           returning issuer, provider_tokens as sealed, refresh_epoch::float8 as epoch`,
    values: [request.sessionId, request.idleMs, request.holdMs],
  });
  return rows[0];
}

export interface TurnEnd {
  readonly sessionId: string;
  readonly epoch: number;
  readonly idleMs: number;
  /** What is to be kept from now on; null: what there is. */
  readonly sealed: Buffer | null;
  /** Null: never. */
  readonly dueInMs: number | null;
}

/** False when the turn is another's by now, or was ended before. */
export async function endTurn(db: Db, { sessionId, epoch, idleMs, sealed, dueInMs }: TurnEnd): Promise<boolean> {
  const { rowCount } = await statement(db, {
    name: "end refresh",
    text: `update sessions set refresh_epoch = refresh_epoch + 1, refresh_due_at = ${after("$4")},
                  provider_tokens = coalesce($5, provider_tokens)
            where session_id = $1 and refresh_epoch = $2 and ${living("$3")}`,
    values: [sessionId, epoch, idleMs, dueInMs, sealed],
  });
  return rowCount === 1;
}

export async function selectTokens(db: Db, sessionId: string, idleMs: number): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>({
    name: "select provider tokens",
    text: `select provider_tokens as sealed from sessions where session_id = $1 and ${living("$2")}`,
    values: [sessionId, idleMs],
  });
  return rows[0]?.sealed;
}

export interface OnceRow {
  readonly kind: OnceKind;
  readonly nameHash: Buffer;
  readonly sealed: Buffer;
  readonly ttlMs: number;
}

/** Inserts nothing when the name is taken. One whose time is over is free again. */
const insertionOf = ({ kind, nameHash, sealed, ttlMs }: OnceRow) => ({
  name: "put once",
  text: `insert into one_time as o (kind, name_sha256, value, expires_at) values ($1, $2, $3, ${after("$4")})
         on conflict (kind, name_sha256) do update set value = excluded.value, expires_at = excluded.expires_at
          where o.expires_at <= statement_timestamp()`,
  values: [kind, nameHash, sealed, ttlMs],
});

/** False when the name is taken. */
export const insertOnce = async (db: Db, row: OnceRow): Promise<boolean> =>
  (await statement(db, insertionOf(row))).rowCount === 1;

/** The same, as a part of a transaction. */
export const insertOnceIn = async (tx: Tx, row: OnceRow): Promise<boolean> =>
  (await tx.query(insertionOf(row))).rowCount === 1;

/** Of many who try at once, the one whose delete it is gets it. */
export async function deleteOnce(db: Db, kind: OnceKind, nameHash: Buffer): Promise<Buffer | undefined> {
  const { rows } = await statement<{ sealed: Buffer; in_time: boolean }>(db, {
    name: "take once",
    text: `delete from one_time where kind = $1 and name_sha256 = $2
           returning value as sealed, expires_at > statement_timestamp() as in_time`,
    values: [kind, nameHash],
  });
  return rows[0]?.in_time ? rows[0].sealed : undefined;
}
