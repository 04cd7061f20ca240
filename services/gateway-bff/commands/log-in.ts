/** Starts a login: stores the values that its response is checked against. */
import type { NativeClient } from "../oidc/native-client.ts";
import { countFailedLogin, loginMs, type PendingLogin } from "../oidc/pending-login.ts";
import type { Provider } from "../oidc/provider.ts";
import type { SessionStore } from "../sessions/index.ts";

export interface LogInDeps {
  readonly provider: Pick<Provider, "begin">;
  readonly sessions: Pick<SessionStore, "clock" | "find" | "putOneTime">;
  readonly reauthenticateMs: number;
}

export interface LoginStart {
  readonly returnTo: string;
  readonly native: NativeClient | undefined;
  /** The user must authenticate again. */
  readonly reauthenticate: boolean;
  /** The user opened the login, not a page of another site. */
  readonly isStartedByUser: boolean;
  /** The session cookie of the browser. */
  readonly sessionToken: string | undefined;
  /** Binds the login to the browser; returns the hash to store. */
  readonly bind: () => string;
}

/** Returns the provider's address for the browser. */
export async function logIn({ provider, sessions, reauthenticateMs }: LogInDeps, start: LoginStart): Promise<string> {
  const { native, reauthenticate, sessionToken } = start;
  const session = native || sessionToken === undefined ? undefined : await sessions.find(sessionToken);
  const { url, state, ...checks } = await provider
    .begin({
      ...(reauthenticate && reauthenticateMs > 0 && { maxAgeSeconds: Math.ceil(reauthenticateMs / 1_000) }),
      interactive: reauthenticate || (native !== undefined && !start.isStartedByUser),
    })
    .catch(countFailedLogin);
  const pending: PendingLogin = {
    ...checks,
    begunAtMs: await sessions.clock(),
    binding: start.bind(),
    returnTo: start.returnTo,
    ...(session && { previous: { userId: session.userId, sessionId: session.sessionId } }),
    ...(native && { native }),
  };
  await sessions.putOneTime("login", state, pending, loginMs);
  return url;
}
