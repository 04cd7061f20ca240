/**
 * The one-time code with which a native client fetches its session token, where a browser gets a cookie. It opens once,
 * within a minute, and only for who made the challenge that the log-in began with (PKCE): a code that another program on
 * the player's machine has caught is worth nothing. The session is made when the code is used, not before.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { NewSession, SessionStore } from "../sessions/index.ts";
import { nativeCodeRefused } from "./problems.ts";

export const nativeCodeMs = 60_000;

interface Kept {
  readonly challenge: string;
  readonly session: NewSession;
}

export async function putNativeCode(sessions: Pick<SessionStore, "put">, kept: Kept): Promise<string> {
  const code = randomBytes(32).toString("base64url");
  await sessions.put("native-code", code, kept, nativeCodeMs);
  return code;
}

/** Spends the code, also when the verifier does not fit: there is one guess. */
export async function takeNativeCode(
  sessions: Pick<SessionStore, "take">,
  { code, verifier }: { readonly code: string; readonly verifier: string },
): Promise<NewSession> {
  const kept = (await sessions.take("native-code", code)) as Kept | undefined;
  if (!kept) throw nativeCodeRefused("the code is not known, was used, or is older than a minute; log in again");
  const given = hash("sha256", verifier, "base64url");
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(kept.challenge))) {
    throw nativeCodeRefused("code_verifier does not belong to the code_challenge of this log-in; log in again");
  }
  return kept.session;
}
