/** The row that both stores write: secrets sealed, names hashed, texts cut. */
import { hash, randomUUIDv7 } from "node:crypto";
import type { Encryption } from "./encryption.ts";
import type { ClientKind, NewSession, OneTimeKind, ProviderLogout, ProviderTokens, UserSnapshot } from "./index.ts";
import { hashToken, newToken } from "./token.ts";

/** A new session as it is stored, with its token, which is not. */
export interface SessionRow {
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
  /** The logouts that would end it. */
  readonly logouts: LogoutNames;
}

const userAgentMax = 200;

export function toSessionRow(session: NewSession, encryption: Encryption): SessionRow {
  const [token, sessionId] = [newToken(), randomUUIDv7()];
  return {
    token,
    tokenHash: hashToken(token) as Buffer,
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
    logouts: toLogoutNames(session),
  };
}

/** The hashed names under which logouts at the provider are stored. */
export interface LogoutNames {
  readonly ofSession: Buffer | null;
  readonly ofSubject: Buffer | null;
}

export function toLogoutNames({
  issuer,
  subject,
  providerSession,
}: Pick<ProviderLogout, "issuer" | "subject" | "providerSession">): LogoutNames {
  const hashName = (kind: string, name: string | undefined) =>
    name === undefined ? null : hash("sha256", JSON.stringify([kind, issuer, name]), "buffer");
  return { ofSession: hashName("sid", providerSession), ofSubject: hashName("sub", subject) };
}

const refreshInMaxMs = 365 * 24 * 60 * 60 * 1_000;

/**
 * A refresh is due a minute before the access token expires, or when a fifth of a short lifetime is left. Null if there is
 * no refresh token or no expiry.
 */
export function refreshInMs({ refreshToken, expiresInSeconds }: ProviderTokens): number | null {
  if (refreshToken === undefined || expiresInSeconds === undefined) return null;
  const ms = (expiresInSeconds - Math.min(60, expiresInSeconds / 5)) * 1_000;
  return Math.round(Math.min(Math.max(ms, 0), refreshInMaxMs));
}

/** Only a suspension has an end. */
export const suspensionEnd = ({ status, suspendedUntil }: UserSnapshot): string | undefined =>
  status === "SUSPENDED" ? suspendedUntil : undefined;

/** The kind is part of the name, so that a value of one kind cannot be opened as another. */
export const oneTimeName = (kind: OneTimeKind, name: string): string => `${kind} ${name}`;

/** A live code or state works like a token, so only its hash is stored. */
export const hashOneTimeName = (kind: OneTimeKind, name: string): Buffer =>
  hash("sha256", oneTimeName(kind, name), "buffer");

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Session IDs also come from callers. A text that cannot be one needs no look-up. */
export const isSessionId = (text: string): boolean => uuid.test(text);
