/**
 * Staff ends one session of a user, or all. The record commits first: if the process dies before the sessions have ended, a
 * retry with the same key ends them.
 */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { sessionNotFound } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";

export interface EndUserSessionsRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly userId: string;
  /** All sessions without it. */
  readonly sessionId?: string | undefined;
  readonly reason: string;
}

/** Returns how many have ended. */
export const endUserSessions =
  ({ db, sessions }: { readonly db: Db; readonly sessions: Pick<SessionStore, "end" | "endAll" | "list"> }) =>
  async ({ key, actor, userId, sessionId, reason }: EndUserSessionsRequest): Promise<number> => {
    await once(db, key, async (tx) => {
      const live = await sessions.list(userId);
      if (sessionId !== undefined && !live.some((session) => session.sessionId === sessionId))
        throw sessionNotFound("the user has no session with this ID");
      const details = sessionId === undefined ? { sessions: live.length } : { session_id: sessionId };
      await recordStaffAct(tx, { actor, act: "endUserSessions", target: userId, reason, details });
      return { status: 200, body: {} };
    });
    if (sessionId === undefined) return sessions.endAll(userId);
    return Number(await sessions.end(userId, sessionId));
  };
