/**
 * Staff ends one session of a user, or all. The record commits first, with the sessions that it names: if the process dies before
 * they have ended, a retry with the same key ends these, and none that the user has opened since.
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
  ({ db, sessions }: { readonly db: Db; readonly sessions: Pick<SessionStore, "end" | "list"> }) =>
  async ({ key, actor, userId, sessionId, reason }: EndUserSessionsRequest): Promise<number> => {
    const { body } = await once(db, key, async (tx) => {
      const live = (await sessions.list(userId)).map((session) => session.sessionId);
      const ended = sessionId === undefined ? live : live.filter((each) => each === sessionId);
      if (sessionId !== undefined && ended.length === 0) throw sessionNotFound("the user has no session with this ID");
      const details = sessionId === undefined ? { sessions: ended.length } : { session_id: sessionId };
      await recordStaffAct(tx, { actor, act: "endUserSessions", target: userId, reason, details });
      return { status: 200, body: { session_ids: ended } };
    });
    const { session_ids = [] } = JSON.parse(body.toString()) as { readonly session_ids?: readonly string[] };
    for (const id of session_ids) await sessions.end(userId, id);
    return session_ids.length;
  };
