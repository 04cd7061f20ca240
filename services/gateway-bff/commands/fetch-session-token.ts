/** Exchanges the code of a native client for a session token, once. */
import { takeNativeCode } from "../oidc/native-code.ts";
import { endedAtProviderText } from "../oidc/pending-login.ts";
import { nativeCodeRefused } from "../problems.ts";
import { EndedAtProviderError } from "../sessions/errors.ts";
import type { NewSession, SessionStore } from "../sessions/index.ts";

export async function fetchSessionToken(
  sessions: Pick<SessionStore, "takeOneTime" | "create" | "list">,
  input: { readonly code: string; readonly verifier: string },
): Promise<{ readonly token: string; readonly endsAt: string; readonly session: NewSession }> {
  const session = await takeNativeCode(sessions, input);
  const { token, sessionId } = await sessions.create(session).catch((error: unknown) => {
    throw error instanceof EndedAtProviderError ? nativeCodeRefused(endedAtProviderText, { cause: error }) : error;
  });
  const listed = (await sessions.list(session.userId)).find((each) => each.sessionId === sessionId);
  if (!listed) throw new Error("a session ended while it was being created");
  return { token, endsAt: listed.endsAt, session };
}
