/** The SQL of the lease under which one process refreshes a session's tokens. */
import { type Db, runStatement } from "@todoke/kernel/db";
import { isLive, msFromNow } from "./sessions.ts";

export interface ClaimedRefreshRow {
  readonly issuer: string;
  readonly sealed: Buffer;
  readonly epoch: number;
}

export interface ClaimRequest {
  readonly sessionId: string;
  readonly idleMs: number;
  readonly leaseMs: number;
}

/** Moves the due time to the end of the lease: until then nothing is due, and after a crash the refresh is due again. */
export async function claimRefresh(db: Db, request: ClaimRequest): Promise<ClaimedRefreshRow | undefined> {
  const { rows } = await runStatement<ClaimedRefreshRow>(db, {
    name: "claim refresh",
    text: `update sessions set refresh_epoch = refresh_epoch + 1, refresh_due_at = ${msFromNow("$3")}
            where session_id = $1 and refresh_due_at <= statement_timestamp() and ${isLive("$2")}
           returning issuer, provider_tokens as sealed, refresh_epoch::float8 as epoch`,
    values: [request.sessionId, request.idleMs, request.leaseMs],
  });
  return rows[0];
}

export interface RefreshOutcome {
  readonly sessionId: string;
  readonly epoch: number;
  readonly idleMs: number;
  /** The new tokens; null keeps the stored ones. */
  readonly sealed: Buffer | null;
  /** Null: never. */
  readonly dueInMs: number | null;
}

/** Returns false if another process has claimed the refresh since, or it is settled already. */
export async function settleRefresh(db: Db, outcome: RefreshOutcome): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "settle refresh",
    text: `update sessions set refresh_epoch = refresh_epoch + 1, refresh_due_at = ${msFromNow("$4")},
                  provider_tokens = coalesce($5, provider_tokens)
            where session_id = $1 and refresh_epoch = $2 and ${isLive("$3")}`,
    values: [outcome.sessionId, outcome.epoch, outcome.idleMs, outcome.dueInMs, outcome.sealed],
  });
  return rowCount === 1;
}
