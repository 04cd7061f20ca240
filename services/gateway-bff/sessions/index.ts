/**
 * Sessions: who is logged in, kept on the server. A client holds nothing but an opaque token.
 *
 * Promises, of every store that implements this port (one suite tests them all):
 *  - a token is 256 random bits, and only its SHA-256 is kept: whoever reads the store can impersonate nobody;
 *  - a session that was ended, or whose time is over by the store's own clock, is never found again;
 *  - a user who was made known as not ACTIVE is refused by every process from then on, whatever sessions there are;
 *  - what is kept to be taken once is handed out once, to one taker, and not after its time;
 *  - a log-out at the provider takes effect with the id of its token or not at all, and also ends a log-in whose session is
 *    created only after it.
 */
import type { Role } from "@todoke/http";
import type { Tx } from "@todoke/kernel/db";

export const userStatuses = ["ACTIVE", "SUSPENDED", "DELETED"] as const;
export type UserStatus = (typeof userStatuses)[number];

/** What account last told of a user. A higher version wins, whichever way and in whatever order it arrives. */
export interface KnownUser {
  readonly userId: string;
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  /** RFC 3339; when a suspension ends by itself. */
  readonly suspendedUntil?: string;
  /** The version of the user in account. */
  readonly version: number;
}

export type ClientKind = "browser" | "native";

/** What the identity provider gave; it is kept encrypted and never leaves the gateway. */
export interface ProviderTokens {
  readonly idToken: string;
  readonly accessToken: string;
  readonly refreshToken?: string;
  /** How long the access token lives from now on. */
  readonly expiresInSeconds?: number;
}

export interface NewSession {
  readonly userId: string;
  readonly client: ClientKind;
  /** Whose log-in it was, so that a log-out there can end it here. */
  readonly issuer: string;
  readonly subject: string;
  /** The provider's own name for its session (`sid`), where it has one. */
  readonly providerSession?: string;
  readonly tokens: ProviderTokens;
  /** When the log-in began, by `clock`: a log-out of the subject since then ends it before it becomes a session. */
  readonly begunAtMs?: number;
  /** When the user last proved who they are at the provider (`auth_time`), in milliseconds since 1970. */
  readonly authenticatedAtMs?: number;
  /** As the user will recognise it in a list: what the User-Agent header said, cut to 200 characters. */
  readonly userAgent?: string;
}

/** A session that lives, with what is known of its user. */
export interface Session {
  /** UUID; names the session in lists. It opens nothing. */
  readonly sessionId: string;
  readonly userId: string;
  readonly client: ClientKind;
  /** A suspension that has ended by its time is ACTIVE. */
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  readonly suspendedUntil?: string;
  /** The provider's access token is about to end: somebody should take the refresh. */
  readonly refreshDue: boolean;
  /** How long ago the user proved who they are at the provider; missing where it did not say. */
  readonly authenticatedAgoMs?: number;
}

/** What a back-channel log-out token says: one session of the provider (`sid`) has ended, or all of a subject. */
export interface ProviderLogout {
  readonly issuer: string;
  /** The token's own id (`jti`): each counts once. */
  readonly tokenId: string;
  readonly subject?: string;
  readonly providerSession?: string;
  /** How long the log-out is remembered: longer than a log-in takes, and longer than its token is valid. */
  readonly rememberMs: number;
}

export interface ListedSession {
  readonly sessionId: string;
  readonly client: ClientKind;
  readonly userAgent?: string;
  readonly createdAt: string;
  readonly lastSeenAt: string;
  /** The end by its age; it ends sooner when it is not used. */
  readonly endsAt: string;
}

/** What `takeRefresh` hands to the one process that may refresh now. */
export interface Refresh {
  readonly sessionId: string;
  readonly issuer: string;
  readonly tokens: ProviderTokens;
  /** The fence: `saveTokens` writes only while it is still this one's turn. */
  readonly epoch: number;
}

export interface SessionStore extends AsyncDisposable {
  /** Milliseconds since 1970, by the store's own clock. */
  clock(): Promise<number>;
  /** The token is in no other answer, ever. Throws EndedAtProvider when the log-in was ended there meanwhile. */
  create(session: NewSession): Promise<{ readonly token: string; readonly sessionId: string }>;
  /** One read: the session and its user. Being found is being used. */
  find(token: string): Promise<Session | undefined>;
  /** Newest first, no more than there may be of one user. */
  list(userId: string): Promise<readonly ListedSession[]>;
  /** Whether there was such a session of that user. */
  end(userId: string, sessionId: string): Promise<boolean>;
  /** All of a user's sessions but one, or all; how many. */
  endAll(userId: string, options?: { readonly except?: string }): Promise<number>;
  /** How many sessions a back-channel log-out has ended; undefined when its token was used before. All of it or nothing. */
  endByProvider(logout: ProviderLogout): Promise<number | undefined>;
  /** The provider's tokens of a session, for its log-out. */
  tokensOf(sessionId: string): Promise<ProviderTokens | undefined>;

  /**
   * Takes over what account says of a user, unless something newer is known. Not ACTIVE ends the user's sessions too. A
   * store in PostgreSQL does so within `tx` where one is given, and takes no other connection; one in Redis ignores it.
   */
  know(user: KnownUser, tx?: Tx): Promise<void>;

  /** To one process at a time, for `holdMs`; undefined when another has it or nothing is due. */
  takeRefresh(sessionId: string, holdMs: number): Promise<Refresh | undefined>;
  /** False when the turn was lost or the session has ended: then these tokens are nobody's. */
  saveTokens(refresh: Refresh, tokens: ProviderTokens): Promise<boolean>;
  /** The refresh failed and may be tried again after `againMs`. */
  giveUpRefresh(refresh: Refresh, againMs: number): Promise<void>;
  /** Ends the session whose refresh the provider refused. False when the turn was lost: then the refusal means nothing. */
  endRefused(refresh: Refresh): Promise<boolean>;

  /** Something to be taken once: a log-in under way, a native client's code. False when the name is taken. */
  put(kind: OnceKind, name: string, value: unknown, ttlMs: number): Promise<boolean>;
  /** Hands it out and forgets it, in one step. */
  take(kind: OnceKind, name: string): Promise<unknown>;

  /** Removes what is over, in small batches; a store that forgets by itself does nothing. */
  removeEnded(): Promise<number>;
}

/** `logout` holds the ids of log-out tokens that were taken: one that comes again is refused. */
export type OnceKind = "login" | "native-code" | "logout";

export interface SessionSettings {
  readonly idleMs: number;
  readonly absoluteMs: number;
  /** More than this, and the oldest one ends. */
  readonly perUserMax: number;
  /** 32 bytes: what the provider's tokens are encrypted with (AES-256-GCM). The first encrypts, all decrypt. */
  readonly secrets: readonly Buffer[];
}
