/**
 * Sessions in Redis. Everything that is more than one command is a script (redis-scripts.ts).
 *
 * While Redis is unavailable, no user is let in, and no response says that a user is logged out. An emptied Redis has logged
 * everybody out. A Redis that loses its last second of writes (`appendfsync everysec` and a crash, or a lagging replica
 * that takes over) can lose an end or a suspension of that second; `appendfsync always` without such a replica loses none.
 */
import { connectRedis, type RedisOptions, type Script } from "@todoke/redis";
import type { SessionSettings } from "../config.ts";
import { openEncryption } from "./encryption.ts";
import { EndedAtProviderError, UnknownUserError } from "./errors.ts";
import type { ListedSession, OneTimeKind, ProviderTokens, Session, SessionStore, UserSnapshot } from "./index.ts";
import * as scripts from "./redis-scripts.ts";
import {
  hashOneTimeName,
  oneTimeName,
  refreshInMs,
  type SessionRow,
  suspensionEnd,
  toLogoutNames,
  toSessionRow,
} from "./session-row.ts";
import { hashToken } from "./token.ts";

export interface RedisSessionsOptions extends RedisOptions {
  readonly settings: SessionSettings;
  /** Prefix of the keys, one for each gateway that shares a Redis but not its sessions. */
  readonly namespace?: string;
}

/** As the scripts store it; times are milliseconds of Redis' clock. */
interface SessionRecord {
  readonly id: string;
  readonly user: string;
  readonly client: Session["client"];
  readonly user_agent?: string;
  readonly created: number;
  readonly seen: number;
  readonly ends: number;
  readonly due?: number;
  /** When the user authenticated, by the provider's clock. */
  readonly authenticated?: number;
}

/** A script blocks Redis while it runs; this many take about two milliseconds. */
const deleteBatchMax = 100;

export function redisSessions({
  settings,
  namespace = "todoke:sessions",
  ...link
}: RedisSessionsOptions): SessionStore {
  const { idleMs, absoluteMs, perUserMax } = settings;
  const encryption = openEncryption(settings.secrets);
  const redis = connectRedis(link);
  const keys = scripts.redisKeys(namespace);

  /** Runs a script on the session keys and on `more`. A missing argument is "". */
  const runWith = (script: Script, more: readonly string[], args: readonly (string | number | null | undefined)[]) =>
    redis.run(script, { keys: [...keys, ...more], arguments: [idleMs, ...args].map((arg) => String(arg ?? "")) });
  const run = (script: Script, ...args: Parameters<typeof runWith>[2]) => runWith(script, [], args);
  const count = async (...call: Parameters<typeof run>) => Number(await run(...call));
  const logoutKey = (name: Buffer) => `{${namespace}}:ended:${name.toString("hex")}`;

  const oneTimeKey = (kind: OneTimeKind, name: string) => [
    `{${namespace}}:${kind}:${hashOneTimeName(kind, name).toString("hex")}`,
  ];
  const open = (sealed: unknown, name: string) =>
    typeof sealed === "string" ? encryption.open(Buffer.from(sealed, "base64"), name) : undefined;

  return {
    clock: () => count(scripts.clock),

    async create(session) {
      const row = toSessionRow(session, encryption);
      const sealed = row.sealedTokens.toString("base64");
      const { ofSubject, ofSession } = row.logouts;
      const logouts = [ofSubject, ofSession].filter((name) => name !== null).map(logoutKey);
      const args = [toRecord(row), sealed, row.refreshInMs, absoluteMs, perUserMax, row.begunAtMs];
      const created = await runWith(scripts.create, logouts, args);
      if (created === -1)
        throw new EndedAtProviderError("the provider ended this login before its session was created");
      if (created === 0) throw new UnknownUserError(`user ${row.userId} is unknown or deleted`);
      return { token: row.token, sessionId: row.sessionId };
    },

    async find(token) {
      const hash = hashToken(token);
      const found = hash && (await run(scripts.find, hash.toString("hex"), idleMs / 20));
      return found ? toSession(found as [string, string, number]) : undefined;
    },

    async list(userId) {
      const records = ((await run(scripts.list, userId)) as string[]).map((text): SessionRecord => JSON.parse(text));
      return records.sort((a, b) => b.created - a.created || (a.id < b.id ? 1 : -1)).map(toListed);
    },

    async getRoles(userId) {
      const found = (await run(scripts.getUser, userId)) as [string, number] | null;
      if (!found) return [];
      const { status, roles, until }: StoredUser = JSON.parse(found[0]);
      const isOver = until !== undefined && Date.parse(until) <= found[1];
      return status === "ACTIVE" || (status === "SUSPENDED" && isOver) ? roles : [];
    },

    end: async (userId, sessionId) => (await count(scripts.endOne, userId, sessionId)) > 0,

    endAll: (userId, { except } = {}) => count(scripts.endAll, userId, except),

    async endByProvider(logout) {
      const { issuer, subject, providerSession, tokenId, rememberMs } = logout;
      const { ofSession, ofSubject } = toLogoutNames(logout);
      const name = ofSession ?? ofSubject;
      if (!name) return 0;
      const sealed = encryption.seal(true, oneTimeName("logout", tokenId)).toString("base64");
      const which = ofSession ? ["p", providerSession] : ["s", subject];
      const args = [issuer, ...which, subject, sealed, Math.ceil(rememberMs)];
      const ended = await runWith(scripts.endByProvider, [...oneTimeKey("logout", tokenId), logoutKey(name)], args);
      return ended === -1 ? undefined : Number(ended);
    },

    async getIdentity(sessionId) {
      const names = (await run(scripts.getIdentity, sessionId)) as [string, string] | null;
      return names ? { issuer: names[0], subject: names[1] } : undefined;
    },

    moveToUser: async ({ sessionId, from, to }) => (await count(scripts.moveToUser, sessionId, from, to)) === 1,

    async getTokens(sessionId) {
      return open(await run(scripts.getTokens, sessionId), sessionId) as ProviderTokens | undefined;
    },

    async saveUser(user) {
      const { userId, version, status, roles } = user;
      const until = suspensionEnd(user);
      const stored: StoredUser = { version, status, roles, ...(until !== undefined && { until }) };
      await run(scripts.saveUser, userId, version, status, JSON.stringify(stored));
    },

    async claimRefresh(sessionId, leaseMs) {
      const claim = (await run(scripts.claimRefresh, sessionId, leaseMs)) as [string, number, string] | null;
      const tokens = open(claim?.[2], sessionId) as ProviderTokens | undefined;
      return claim && tokens ? { sessionId, issuer: claim[0], tokens, epoch: claim[1] } : undefined;
    },

    async saveTokens({ sessionId, epoch }, tokens) {
      const sealed = encryption.seal(tokens, sessionId).toString("base64");
      return (await count(scripts.settleRefresh, sessionId, epoch, refreshInMs(tokens), sealed)) === 1;
    },

    async postponeRefresh({ sessionId, epoch }, delayMs) {
      await run(scripts.settleRefresh, sessionId, epoch, delayMs, null);
    },

    endOnRefusedRefresh: async ({ sessionId, epoch }) =>
      (await count(scripts.endOnRefusedRefresh, sessionId, epoch)) > 0,

    async putOneTime(kind, name, value, ttlMs) {
      const sealed = encryption.seal(value, oneTimeName(kind, name)).toString("base64");
      const input = { keys: oneTimeKey(kind, name), arguments: [sealed, String(Math.ceil(ttlMs))] };
      return (await redis.run(scripts.putOneTime, input)) === 1;
    },

    async takeOneTime(kind, name) {
      return open(
        await redis.run(scripts.takeOneTime, { keys: oneTimeKey(kind, name), arguments: [] }),
        oneTimeName(kind, name),
      );
    },

    async deleteExpired() {
      for (let deleted = 0; ; ) {
        const [examined, count] = (await run(scripts.deleteExpired, deleteBatchMax)) as [number, number];
        deleted += count;
        if (examined < deleteBatchMax) return deleted;
      }
    },

    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

type StoredUser = Pick<UserSnapshot, "version" | "status" | "roles"> & { readonly until?: string };

/** The script adds the times. */
function toRecord(row: SessionRow): string {
  return JSON.stringify({
    id: row.sessionId,
    token: row.tokenHash.toString("hex"),
    user: row.userId,
    client: row.client,
    issuer: row.issuer,
    subject: row.subject,
    provider_session: row.providerSession ?? undefined,
    user_agent: row.userAgent ?? undefined,
    authenticated: row.authenticatedAtMs ?? undefined,
  });
}

function toSession([session, user, now]: readonly [string, string, number]): Session {
  const { id, user: userId, client, due, authenticated }: SessionRecord = JSON.parse(session);
  const { status, roles, until }: StoredUser = JSON.parse(user);
  const isExpired = until !== undefined && Date.parse(until) <= now;
  return {
    sessionId: id,
    userId,
    client,
    status: isExpired ? "ACTIVE" : status,
    roles,
    ...(until !== undefined && !isExpired && { suspendedUntil: until }),
    refreshDue: due !== undefined && due <= now,
    ...(authenticated !== undefined && { authenticatedAgoMs: now - authenticated }),
  };
}

function toListed({ id, client, user_agent, created, seen, ends }: SessionRecord): ListedSession {
  const [createdAt = "", lastSeenAt = "", endsAt = ""] = [created, seen, ends].map((ms) => new Date(ms).toISOString());
  return {
    sessionId: id,
    client,
    ...(user_agent !== undefined && { userAgent: user_agent }),
    createdAt,
    lastSeenAt,
    endsAt,
  };
}
