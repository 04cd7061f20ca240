/** A log-in between its two halves: what is kept of it on the server until the provider has answered. */
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import type { Cookie } from "../guard/cookie.ts";
import type { SessionStore } from "../sessions/index.ts";
import { tellLogin } from "../telemetry.ts";
import type { NativeClient } from "./native-client.ts";

export interface UnderWay {
  readonly nonce: string;
  readonly verifier: string;
  readonly maxAgeSeconds?: number;
  /** By the store's clock. */
  readonly begunAtMs: number;
  /** Hash of the cookie of the browser in which it began. */
  readonly binding: string;
  readonly returnTo: string;
  /** The session that the browser had then: on the way back its cookie, SameSite=Strict, may not be sent. */
  readonly previous?: NamedSession;
  readonly native?: NativeClient;
}

export interface NamedSession {
  readonly userId: string;
  readonly sessionId: string;
}

/** The session that a browser has. */
export async function sessionIn(
  request: FastifyRequest,
  { cookie, sessions }: { readonly cookie: Cookie; readonly sessions: Pick<SessionStore, "find"> },
): Promise<NamedSession | undefined> {
  const [token, ...more] = cookie.valuesIn(request);
  const session = token !== undefined && more.length === 0 ? await sessions.find(token) : undefined;
  return session && { userId: session.userId, sessionId: session.sessionId };
}

/** Why a log-in opens no session although all else is right. */
export const loggedOutMeanwhile = "it was ended by a log-out at the identity provider meanwhile; log in again";

/** Counts a log-in that did not come about, and lets the refusal go on to whoever answers it. */
export function tellRefused(error: unknown): never {
  tellLogin(error instanceof Problem ? error.code : "failed");
  throw error;
}
