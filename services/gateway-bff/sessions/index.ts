/**
 * Sessions: who is logged in, stored on the server. A client holds only an opaque token.
 *
 * Guarantees of every store that implements this port (one suite tests them all):
 *  - a token is 256 random bits and only its SHA-256 is stored, so a reader of the store cannot impersonate a user;
 *  - a session that ended, or expired by the store's clock, is never found again;
 *  - once a user is saved as not ACTIVE, every process refuses the user, with any session;
 *  - a one-time value is given to one caller, once, and not after its expiry;
 *  - a logout at the provider takes effect together with the ID of its token or not at all, and also ends a login whose
 *    session is created only after it.
 */
import type { Role } from "@todoke/http";
import type { Tx } from "@todoke/kernel/db";

export const userStatuses = ["ACTIVE", "SUSPENDED", "DELETED"] as const;
export type UserStatus = (typeof userStatuses)[number];

/** The gateway's copy of a user of account. The highest version wins, in any order of arrival. */
export interface UserSnapshot {
  readonly userId: string;
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  /** RFC 3339: when a suspension expires. */
  readonly suspendedUntil?: string;
  /** The version of the user in account. */
  readonly version: number;
}

export type ClientKind = "browser" | "native";

/** Stored encrypted, as JSON; they never leave the gateway. */
export interface ProviderTokens {
  readonly idToken: string;
  readonly accessToken: string;
  readonly refreshToken?: string;
  /** The remaining lifetime of the access token when it was issued. */
  readonly expiresInSeconds?: number;
}

/** Stored as JSON with the code of a native client, so its field names stay. */
export interface NewSession {
  readonly userId: string;
  readonly client: ClientKind;
  /** The provider's names of the user, by which a logout there finds the session. */
  readonly issuer: string;
  readonly subject: string;
  /** The provider's own ID of its session (`sid`), if it has one. */
  readonly providerSession?: string;
  readonly tokens: ProviderTokens;
  /** When the login began, by `clock`: a later logout of the subject ends the login before it becomes a session. */
  readonly begunAtMs?: number;
  /** When the user last authenticated at the provider (`auth_time`), in milliseconds since 1970. */
  readonly authenticatedAtMs?: number;
  /** The User-Agent header, cut to 200 characters, by which users recognize the session in a list. */
  readonly userAgent?: string;
}

/** A live session with its user. */
export interface Session {
  /** UUID; names the session in lists and grants no access. */
  readonly sessionId: string;
  readonly userId: string;
  readonly client: ClientKind;
  /** ACTIVE if a suspension has expired. */
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  readonly suspendedUntil?: string;
  /** The provider's access token expires soon: a process should claim the refresh. */
  readonly refreshDue: boolean;
  /** How long ago the user authenticated at the provider; missing if the provider does not say. */
  readonly authenticatedAgoMs?: number;
}

/** A back-channel logout: one session of the provider (`sid`) has ended, or all sessions of a subject. */
export interface ProviderLogout {
  readonly issuer: string;
  /** The token's own ID (`jti`): each counts once. */
  readonly tokenId: string;
  readonly subject?: string;
  readonly providerSession?: string;
  /** How long the logout is remembered: longer than a login takes, and longer than its token is valid. */
  readonly rememberMs: number;
}

export interface ListedSession {
  readonly sessionId: string;
  readonly client: ClientKind;
  readonly userAgent?: string;
  readonly createdAt: string;
  readonly lastSeenAt: string;
  /** The end by age; an unused session ends sooner. */
  readonly endsAt: string;
}

export interface SessionMove {
  readonly sessionId: string;
  readonly from: string;
  readonly to: string;
}

/** A lease on the refresh of a session's tokens. */
export interface RefreshClaim {
  readonly sessionId: string;
  readonly issuer: string;
  readonly tokens: ProviderTokens;
  /** The fence: a settlement with an old epoch changes nothing. */
  readonly epoch: number;
}

export interface SessionStore extends AsyncDisposable {
  /** Milliseconds since 1970, by the store's own clock. */
  clock(): Promise<number>;
  /** The only call that returns the token. Throws EndedAtProviderError if the provider has ended the login. */
  create(session: NewSession): Promise<{ readonly token: string; readonly sessionId: string }>;
  /** One read of the session and its user. It counts as use of the session. */
  find(token: string): Promise<Session | undefined>;
  /** Newest first, at most as many as a user may have. */
  list(userId: string): Promise<readonly ListedSession[]>;
  /** The roles of a user who may act now; none if the user is unknown, suspended or deleted. */
  getRoles(userId: string): Promise<readonly Role[]>;
  /** Returns false if the user has no such session. */
  end(userId: string, sessionId: string): Promise<boolean>;
  /** Ends all sessions of a user, or all but one; returns how many. */
  endAll(userId: string, options?: { readonly except?: string }): Promise<number>;
  /** Returns how many sessions the logout ended; undefined if its token was used before. Atomic. */
  endByProvider(logout: ProviderLogout): Promise<number | undefined>;
  /** Who logged in: the provider's names of the user. */
  getIdentity(sessionId: string): Promise<Pick<NewSession, "issuer" | "subject"> | undefined>;
  /**
   * Makes a session that belongs to `from` belong to `to`, a user that is saved. Returns false if the session has ended or
   * belongs to another user. Repeating the call has no effect.
   */
  moveToUser(move: SessionMove): Promise<boolean>;
  /** The provider's tokens of a session, for its logout. */
  getTokens(sessionId: string): Promise<ProviderTokens | undefined>;

  /**
   * Saves a user unless a newer version is stored. If the user is not ACTIVE, it also ends the user's sessions. The
   * PostgreSQL store uses the connection of `tx` if given; the Redis store ignores it.
   */
  saveUser(user: UserSnapshot, tx?: Tx): Promise<void>;

  /** For one process at a time. Returns undefined if another process has the lease or no refresh is due. */
  claimRefresh(sessionId: string, leaseMs: number): Promise<RefreshClaim | undefined>;
  /** Returns false if the claim was lost or the session has ended: then the tokens are not stored. */
  saveTokens(claim: RefreshClaim, tokens: ProviderTokens): Promise<boolean>;
  /** The refresh failed; it is due again after `delayMs`. */
  postponeRefresh(claim: RefreshClaim, delayMs: number): Promise<void>;
  /** Ends the session whose refresh the provider refused. Returns false if the claim was lost: then nothing changes. */
  endOnRefusedRefresh(claim: RefreshClaim): Promise<boolean>;

  /** Returns false if the name is in use. */
  putOneTime(kind: OneTimeKind, name: string, value: unknown, ttlMs: number): Promise<boolean>;
  /** Returns the value and deletes it, in one step. */
  takeOneTime(kind: OneTimeKind, name: string): Promise<unknown>;

  /** Deletes expired rows in small batches; returns how many. */
  deleteExpired(): Promise<number>;
}

/** A pending login, a native client's code, or the ID of a used logout token. */
export type OneTimeKind = "login" | "native-code" | "logout";
