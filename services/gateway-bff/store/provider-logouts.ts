/** The SQL of logouts that the identity provider announced. */
import type { Tx } from "@todoke/kernel/db";
import type { SessionRow } from "../sessions/session-row.ts";
import { msFromNow, toTimestamp } from "./sessions.ts";

/**
 * Serializes a login with its logout at the provider: the second one sees what the first one did. A login takes its locks
 * before it locks any row, and a logout takes only one, so that no two can deadlock.
 */
export async function lockLogouts(tx: Tx, names: readonly Buffer[], mode: "shared" | "exclusive"): Promise<void> {
  const lock = mode === "shared" ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock";
  await tx.query({
    name: `lock provider logouts ${mode}`,
    text: `select ${lock}(hashtextextended('provider log-out ' || current_schema() || ' ' || encode(name, 'hex'), 0))
             from unnest($1::bytea[]) as name`,
    values: [names],
  });
}

/** Whether the provider has ended this login. Needs `lockLogouts` in an earlier statement. */
export async function isEndedAtProvider(tx: Tx, { logouts, begunAtMs }: SessionRow): Promise<boolean> {
  const { rows } = await tx.query<{ ended: boolean }>({
    name: "is ended at provider",
    text: `select exists (select from provider_logouts where expires_at > statement_timestamp() and (
                    name_sha256 = $1 or (name_sha256 = $2 and ended_at >= ${toTimestamp("$3")}))) as ended`,
    values: [logouts.ofSession, logouts.ofSubject, begunAtMs],
  });
  return rows[0]?.ended ?? false;
}

export async function upsertProviderLogout(tx: Tx, name: Buffer, rememberMs: number): Promise<void> {
  await tx.query({
    name: "remember provider logout",
    text: `insert into provider_logouts (name_sha256, ended_at, expires_at)
           values ($1, statement_timestamp(), ${msFromNow("$2")})
           on conflict (name_sha256) do update set ended_at = excluded.ended_at, expires_at = excluded.expires_at`,
    values: [name, rememberMs],
  });
}
