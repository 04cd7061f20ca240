/**
 * Ends a session at the request of its user. It never waits for the provider's revocation and does not fail with the
 * provider: the session has ended when the response is sent.
 */
import type { Provider } from "../oidc/provider.ts";
import type { Session, SessionStore } from "../sessions/index.ts";

export interface LogOutDeps {
  readonly provider: Pick<Provider, "revoke" | "logoutUrl">;
  readonly sessions: Pick<SessionStore, "getTokens" | "end">;
  readonly origin: string;
  readonly onError: (error: unknown) => void;
}

/** Returns the address at which a browser ends its session at the provider, if there is one. */
export async function logOut(
  { provider, sessions, origin, onError }: LogOutDeps,
  { userId, sessionId }: Pick<Session, "userId" | "sessionId">,
): Promise<string | undefined> {
  const report = (message: string) => (cause: unknown) => onError(new Error(message, { cause }));
  const tokens = await sessions.getTokens(sessionId);
  await sessions.end(userId, sessionId);
  if (tokens) void provider.revoke(tokens).catch(report("revoking the tokens of a session after its logout failed"));
  const url = await provider.logoutUrl(`${origin}/`).catch(report("reading the provider's logout address failed"));
  return url ?? undefined;
}
