/** The table `api_keys` of a service. It has the SHA-256 of a key, never its text. */
import { type Db, type Queryable, rfc3339Sql, runStatement, type Tx } from "@todoke/kernel/db";
import type { Scope } from "./callers.ts";

/** Valid now, by the database's clock. */
const isLive = "revoked_at is null and (expires_at is null or expires_at > now())";

/** A key that is valid now. */
export interface LiveKey {
  readonly key_id: string;
  /** Hex. */
  readonly sha256: string;
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Its own rate; null if that of the service applies. */
  readonly per_second: number | null;
  /** By the database's clock; null if it does not expire. */
  readonly ends_in_ms: number | null;
  /** Its last use must be recorded again. */
  readonly use_is_due: boolean;
}

// A minute is precise enough to see whether a key is in use, and spares a write per read.
const useRecordedEvery = "interval '1 minute'";

/** The valid keys with these hashes (hex), each by an index probe. */
export async function findLiveKeys(db: Queryable, hashes: readonly string[]): Promise<LiveKey[]> {
  const { rows } = await db.query<LiveKey>({
    name: "find api keys",
    text: `
select key_id, encode(sha256, 'hex') as sha256, holder, scopes, per_second,
       (extract(epoch from expires_at - now()) * 1000)::float8 as ends_in_ms,
       last_used_at is null or last_used_at < now() - ${useRecordedEvery} as use_is_due
  from api_keys
 where sha256 = any($1::bytea[]) and ${isLive}`,
    values: [hashes.map((hex) => Buffer.from(hex, "hex"))],
  });
  return rows;
}

/** One row per statement, so that processes cannot deadlock; a second one changes nothing. */
export async function recordUse(db: Queryable, keyId: string): Promise<void> {
  await db.query({
    name: "note use of api key",
    text: `update api_keys set last_used_at = now()
            where key_id = $1 and (last_used_at is null or last_used_at < now() - ${useRecordedEvery})`,
    values: [keyId],
  });
}

export interface NewKey {
  readonly keyId: string;
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Hex. */
  readonly sha256: string;
  readonly createdBy: string;
  /** RFC 3339. */
  readonly expiresAt?: string;
  /** Requests per second to one process of a service; that of the service by default. */
  readonly perSecond?: number;
}

/** Idempotent. Returns false if the id belongs to another key, or to a revoked one. */
export async function createKey(db: Db | Tx, key: NewKey): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    text: `
insert into api_keys (key_id, holder, scopes, sha256, created_by, expires_at, per_second)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (key_id) do update set last_used_at = api_keys.last_used_at
 where api_keys.holder = excluded.holder and api_keys.scopes = excluded.scopes and api_keys.sha256 = excluded.sha256
   and api_keys.expires_at is not distinct from excluded.expires_at
   and api_keys.per_second is not distinct from excluded.per_second and api_keys.revoked_at is null`,
    values: [
      key.keyId,
      key.holder,
      key.scopes,
      Buffer.from(key.sha256, "hex"),
      key.createdBy,
      key.expiresAt ?? null,
      key.perSecond ?? null,
    ],
  });
  return rowCount === 1;
}

/** The time in this many days, or the given one; undefined if it is not in the future by the database's clock. */
export async function futureTime(
  db: Queryable,
  { inDays = null, at = null }: { readonly inDays?: number | null; readonly at?: string | null },
): Promise<string | undefined> {
  const { rows } = await db.query<{ time: string }>(
    `select ${rfc3339Sql("time")} as time
       from (select coalesce($1::timestamptz, now() + make_interval(days => $2)) as time) as wanted
      where time > now()`,
    [at, inDays],
  );
  return rows[0]?.time;
}

/** One key, or all keys of a holder. */
export type KeySelection = { readonly keyId: string } | { readonly holder: string };

export interface ListedKey {
  readonly key_id: string;
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Null: the rate of the service. */
  readonly per_second: number | null;
  readonly state: "live" | "expired" | "revoked";
  /** Times are RFC 3339, UTC. */
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly revoked_by: string | null;
  readonly revoked_reason: string | null;
  readonly last_used_at: string | null;
}

export interface KeyPage {
  /** All keys by default. */
  readonly of?: KeySelection | undefined;
  /** Include revoked and expired keys. */
  readonly all: boolean;
  readonly limit: number;
}

/** Newest first. */
export async function listKeys(db: Queryable, { of, all, limit }: KeyPage): Promise<ListedKey[]> {
  const { rows } = await db.query<ListedKey>(
    `select key_id, holder, scopes, per_second,
            case when ${isLive} then 'live' when revoked_at is null then 'expired' else 'revoked' end as state,
            ${rfc3339Sql("created_at")} as created_at, created_by, ${rfc3339Sql("expires_at")} as expires_at,
            ${rfc3339Sql("revoked_at")} as revoked_at, revoked_by, revoked_reason, ${rfc3339Sql("last_used_at")} as last_used_at
       from api_keys
      where ($1::boolean or (${isLive})) and ($2::boolean or key_id = $3::uuid or holder = $4::text)
      order by api_keys.created_at desc, key_id limit $5`,
    [all, of === undefined, ...choiceValues(of), limit],
  );
  return rows;
}

export interface Revocation {
  readonly by: string;
  readonly reason?: string | undefined;
}

/** Idempotent; returns the ids of keys that were not revoked before. Wake running services after it. */
export async function revokeKeys(db: Db | Tx, of: KeySelection, { by, reason }: Revocation): Promise<string[]> {
  const { rows } = await runStatement<{ key_id: string }>(db, {
    text: `
update api_keys set revoked_at = now(), revoked_by = $3, revoked_reason = $4
 where (key_id = $1::uuid or holder = $2::text) and revoked_at is null
returning key_id`,
    values: [...choiceValues(of), by, reason ?? null],
  });
  return rows.map(({ key_id }) => key_id);
}

/** An id and a holder; one or both are null, which equals nothing, so that nothing is selected by mistake. */
const choiceValues = (of: KeySelection | undefined): [keyId: string | null, holder: string | null] => [
  of && "keyId" in of ? of.keyId : null,
  of && "holder" in of ? of.holder : null,
];
