/** Ends one session of a user. */
import { sessionNotFound } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";

export async function endSession(
  sessions: Pick<SessionStore, "end">,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<void> {
  if (!(await sessions.end(userId, sessionId))) throw sessionNotFound("the user has no session with this ID");
}
