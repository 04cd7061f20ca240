/** Ends every session of a user but the current one; returns how many. */
import type { Session, SessionStore } from "../sessions/index.ts";

export function endOtherSessions(
  sessions: Pick<SessionStore, "endAll">,
  { userId, sessionId }: Pick<Session, "userId" | "sessionId">,
): Promise<number> {
  return sessions.endAll(userId, { except: sessionId });
}
