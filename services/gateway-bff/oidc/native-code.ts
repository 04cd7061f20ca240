/**
 * The one-time code that a native client exchanges for its session token. It is valid once, for a minute, and only with the
 * verifier of the login's challenge (PKCE), so a code that another program intercepted is worthless. The session is created
 * when the code is used.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { nativeCodeRefused } from "../problems.ts";
import type { NewSession, SessionStore } from "../sessions/index.ts";

export const nativeCodeMs = 60_000;

/** Stored as JSON, so its field names stay. */
interface StoredCode {
  readonly challenge: string;
  readonly session: NewSession;
}

export async function putNativeCode(sessions: Pick<SessionStore, "putOneTime">, stored: StoredCode): Promise<string> {
  const code = randomBytes(32).toString("base64url");
  await sessions.putOneTime("native-code", code, stored, nativeCodeMs);
  return code;
}

/** Uses the code up, also if the verifier is wrong: there is one guess. */
export async function takeNativeCode(
  sessions: Pick<SessionStore, "takeOneTime">,
  { code, verifier }: { readonly code: string; readonly verifier: string },
): Promise<NewSession> {
  const stored = (await sessions.takeOneTime("native-code", code)) as StoredCode | undefined;
  if (!stored) throw nativeCodeRefused("the code is unknown, used, or older than a minute; log in again");
  const challenge = hash("sha256", verifier, "base64url");
  if (!timingSafeEqual(Buffer.from(challenge), Buffer.from(stored.challenge)))
    throw nativeCodeRefused("code_verifier does not match the code_challenge of this login; log in again");
  return stored.session;
}
