/** What every store makes of what it is given, before it keeps it: secrets are sealed, names hashed, texts cut. */
import { hash, randomUUIDv7 } from "node:crypto";
import type { Encryption } from "./encryption.ts";
import type { ClientKind, KnownUser, NewSession, OnceKind, ProviderLogout, ProviderTokens } from "./index.ts";
import { newToken, tokenHashOf } from "./token.ts";

/** A new session as it is kept, and the token of which only the hash is. */
export interface Draft {
  readonly token: string;
  readonly tokenHash: Buffer;
  readonly sessionId: string;
  readonly userId: string;
  readonly client: ClientKind;
  readonly issuer: string;
  readonly subject: string;
  readonly providerSession: string | null;
  readonly userAgent: string | null;
  readonly sealedTokens: Buffer;
  readonly refreshInMs: number | null;
  readonly begunAtMs: number | null;
  readonly authenticatedAtMs: number | null;
  /** The log-outs that would end it. */
  readonly logouts: LogoutNames;
}

const userAgentMax = 200;

export function draftOf(session: NewSession, encryption: Encryption): Draft {
  const [token, sessionId] = [newToken(), randomUUIDv7()];
  return {
    token,
    tokenHash: tokenHashOf(token) as Buffer,
    sessionId,
    userId: session.userId,
    client: session.client,
    issuer: session.issuer,
    subject: session.subject,
    providerSession: session.providerSession ?? null,
    userAgent: session.userAgent?.slice(0, userAgentMax).toWellFormed() ?? null,
    sealedTokens: encryption.seal(session.tokens, sessionId),
    refreshInMs: refreshInMs(session.tokens),
    begunAtMs: session.begunAtMs ?? null,
    authenticatedAtMs: session.authenticatedAtMs ?? null,
    logouts: logoutNamesOf(session),
  };
}

/** Under which names log-outs at the provider are remembered. */
export interface LogoutNames {
  readonly ofSession: Buffer | null;
  readonly ofSubject: Buffer | null;
}

type NamedThere = Pick<ProviderLogout, "issuer" | "subject" | "providerSession">;

export function logoutNamesOf({ issuer, subject, providerSession }: NamedThere): LogoutNames {
  const named = (kind: string, name: string | undefined) =>
    name === undefined ? null : hash("sha256", JSON.stringify([kind, issuer, name]), "buffer");
  return { ofSession: named("sid", providerSession), ofSubject: named("sub", subject) };
}

const refreshInMaxMs = 365 * 24 * 60 * 60 * 1_000;

/**
 * When somebody should begin to refresh: a minute before the access token ends, or when a fifth of a short one is left.
 * Null where there is nothing to refresh with, or no end.
 */
export function refreshInMs({ refreshToken, expiresInSeconds }: ProviderTokens): number | null {
  if (refreshToken === undefined || expiresInSeconds === undefined) return null;
  const ms = (expiresInSeconds - Math.min(60, expiresInSeconds / 5)) * 1_000;
  return Math.round(Math.min(Math.max(ms, 0), refreshInMaxMs));
}

/** Only a suspension has an end. */
export const untilOf = ({ status, suspendedUntil }: KnownUser): string | undefined =>
  status === "SUSPENDED" ? suspendedUntil : undefined;

/** Two kinds never share a name, here and in what is sealed under it. */
export const onceName = (kind: OnceKind, name: string): string => `${kind} ${name}`;

/** A code or a state is as good as a token while it lives: whoever reads the store learns only its hash. */
export const onceHashOf = (kind: OnceKind, name: string): Buffer => hash("sha256", onceName(kind, name), "buffer");

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Names of sessions come from callers too. What cannot be one is no session's, and needs no look-up. */
export const isSessionId = (text: string): boolean => uuid.test(text);
