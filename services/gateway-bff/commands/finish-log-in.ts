/**
 * Finishes a login with the provider's response.
 *
 * A pending login is taken once: a response that comes twice, late, or in another browser has no effect. The session is
 * always new, and the browser's earlier sessions end, so that a token that was known before is worthless.
 */
import { Problem } from "@todoke/kernel/problem";
import { type ResolveIdentity, toIdentity } from "../oidc/identity.ts";
import { type NativeClient, nativeRedirectUrl } from "../oidc/native-client.ts";
import { putNativeCode } from "../oidc/native-code.ts";
import { countFailedLogin, endedAtProviderText, type PendingLogin } from "../oidc/pending-login.ts";
import type { Provider } from "../oidc/provider.ts";
import { loginNotPending, loginRefused } from "../problems.ts";
import { EndedAtProviderError } from "../sessions/errors.ts";
import type { NewSession, SessionStore } from "../sessions/index.ts";
import { countLogin } from "../telemetry.ts";

export interface FinishLogInDeps {
  readonly provider: Pick<Provider, "finish">;
  readonly sessions: Pick<SessionStore, "takeOneTime" | "putOneTime" | "saveUser" | "create" | "find" | "end">;
  readonly resolveIdentity: ResolveIdentity;
  readonly onError: (error: unknown) => void;
}

export interface LoginResponse {
  readonly state: string;
  /** The query of the callback. */
  readonly query: URLSearchParams;
  readonly userAgent: string | undefined;
  /** The session cookie of the browser. */
  readonly sessionToken: string | undefined;
  /** Whether the login began in this browser. */
  readonly isBound: (binding: string) => boolean;
}

type FinishedLogin =
  | { readonly kind: "browser"; readonly session: NewSession; readonly token: string; readonly returnTo: string }
  /** A native client also gets a failure as a redirect; `failure` is its code. */
  | { readonly kind: "native"; readonly redirectUrl: string; readonly failure?: string };

export async function finishLogIn(deps: FinishLogInDeps, response: LoginResponse): Promise<FinishedLogin> {
  const pending = await takePending(deps, response).catch(countFailedLogin);
  const session = verify(deps, response, pending).catch(countFailedLogin);
  if (pending.native) return finishNative(deps, pending.native, session);
  const opened = await session;
  const token = await replaceSessions(deps, { session: opened, pending, sessionToken: response.sessionToken });
  return { kind: "browser", session: opened, token, returnTo: pending.returnTo };
}

async function takePending({ sessions }: FinishLogInDeps, { state, isBound }: LoginResponse): Promise<PendingLogin> {
  const pending = (await sessions.takeOneTime("login", state)) as PendingLogin | undefined;
  if (!pending) throw loginNotPending("it was used, is older than ten minutes, or never began; log in again");
  if (isBound(pending.binding)) return pending;
  throw loginNotPending("it began in another browser, or cookies are turned off; log in again in this browser");
}

/** Returns the session of a user who is verified and saved. */
async function verify(deps: FinishLogInDeps, response: LoginResponse, pending: PendingLogin): Promise<NewSession> {
  const { provider, sessions, resolveIdentity } = deps;
  const { claims, ...login } = await provider.finish(response.query, { ...pending, state: response.state });
  const { userId, ...user } = await resolveIdentity(toIdentity(login, claims));
  if (user.status === "DELETED") throw loginRefused("this account was deleted");
  await sessions.saveUser({ userId, ...user });
  // A suspended user gets a session too, which only shows the suspension.
  countLogin(user.status === "SUSPENDED" ? "suspended" : "ok");
  return {
    ...login,
    userId,
    client: pending.native ? "native" : "browser",
    begunAtMs: pending.begunAtMs,
    ...(response.userAgent && { userAgent: response.userAgent }),
  };
}

interface Replacement {
  readonly session: NewSession;
  readonly pending: PendingLogin;
  readonly sessionToken: string | undefined;
}

async function replaceSessions({ sessions }: FinishLogInDeps, replacement: Replacement): Promise<string> {
  const { session, pending, sessionToken } = replacement;
  const { token } = await sessions.create(session).catch((error: unknown) => {
    throw error instanceof EndedAtProviderError ? loginRefused(endedAtProviderText, { cause: error }) : error;
  });
  const current = sessionToken === undefined ? undefined : await sessions.find(sessionToken);
  await Promise.all([pending.previous, current].map((old) => old && sessions.end(old.userId, old.sessionId)));
  return token;
}

async function finishNative(
  { sessions, onError }: FinishLogInDeps,
  native: NativeClient,
  session: Promise<NewSession>,
): Promise<FinishedLogin> {
  try {
    const code = await putNativeCode(sessions, { challenge: native.challenge, session: await session });
    return { kind: "native", redirectUrl: nativeRedirectUrl(native, { code }) };
  } catch (error) {
    // The redirect hides the error from the log of requests. A refusal is not an error of ours.
    if (!(error instanceof Problem && error.status < 500))
      onError(new Error("the login of a native client failed", { cause: error }));
    const failure = error instanceof Problem ? error.code : "failed";
    return { kind: "native", redirectUrl: nativeRedirectUrl(native, { error }), failure };
  }
}
