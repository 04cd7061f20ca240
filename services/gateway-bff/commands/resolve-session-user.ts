/**
 * Resolves the user of a session anew, by the identity that the session was created with. Needed if account no longer has the
 * user, as after a restore from a backup. The identity gets one user, however many requests do this at once; the session, with
 * its token, then belongs to that user (ADR 53).
 */
import { problems } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { claimsOf, toIdentity } from "../oidc/identity.ts";
import { accountInactive } from "../problems.ts";
import type { Session, UserSnapshot } from "../sessions/index.ts";

export function resolveSessionUser({ sessions, resolveIdentity }: Pick<Deps, "sessions" | "resolveIdentity">) {
  const ended = () => problems.unauthenticated("the session has ended; log in again");

  return async (session: Session | undefined): Promise<UserSnapshot> => {
    const { sessionId = "", userId = "" } = session ?? {};
    const [identity, tokens] = [await sessions.getIdentity(sessionId), await sessions.getTokens(sessionId)];
    if (!identity) throw ended();
    const user = await resolveIdentity(toIdentity(identity, claimsOf(tokens?.idToken)));
    if (user.status !== "ACTIVE") {
      // Its copy of the user is ACTIVE, so the session itself has to end.
      await sessions.end(userId, sessionId);
      throw accountInactive("this account is suspended");
    }
    await sessions.saveUser(user);
    if (!(await sessions.moveToUser({ sessionId, from: userId, to: user.userId }))) throw ended();
    return user;
  };
}
