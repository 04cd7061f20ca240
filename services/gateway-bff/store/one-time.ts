/** The SQL of one-time values: pending logins, codes of native clients, and IDs of used logout tokens. */
import { type Db, runStatement, type Tx } from "@todoke/kernel/db";
import type { OneTimeKind } from "../sessions/index.ts";
import { msFromNow } from "./sessions.ts";

export interface OneTimeRow {
  readonly kind: OneTimeKind;
  readonly nameHash: Buffer;
  readonly sealed: Buffer;
  readonly ttlMs: number;
}

/** Returns false, and inserts nothing, if the name is in use. An expired name is free. */
export async function insertOneTime(db: Db | Tx, { kind, nameHash, sealed, ttlMs }: OneTimeRow): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "put one-time value",
    text: `insert into one_time as o (kind, name_sha256, value, expires_at) values ($1, $2, $3, ${msFromNow("$4")})
           on conflict (kind, name_sha256) do update set value = excluded.value, expires_at = excluded.expires_at
            where o.expires_at <= statement_timestamp()`,
    values: [kind, nameHash, sealed, ttlMs],
  });
  return rowCount === 1;
}

/** If several callers try at once, the one whose delete takes effect gets the value. */
export async function takeOneTime(db: Db, kind: OneTimeKind, nameHash: Buffer): Promise<Buffer | undefined> {
  const { rows } = await runStatement<{ sealed: Buffer; in_time: boolean }>(db, {
    name: "take one-time value",
    text: `delete from one_time where kind = $1 and name_sha256 = $2
           returning value as sealed, expires_at > statement_timestamp() as in_time`,
    values: [kind, nameHash],
  });
  return rows[0]?.in_time ? rows[0].sealed : undefined;
}
