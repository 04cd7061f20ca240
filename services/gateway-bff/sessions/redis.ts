/**
 * Sessions in Redis, with the promises of the port. Whatever is more than one command is one script (redis-scripts.ts).
 *
 * While Redis cannot be asked nothing is known of sessions: nobody is let in, and nobody is told that they are logged out.
 * A Redis that was emptied has logged everybody out and lets nobody in. One that forgets the last second of what it said
 * it had (`appendfsync everysec` and a crash, a replica that takes over and lags) can forget an end or a suspension of
 * that second; with `appendfsync always` and no such replica it forgets neither. All keys of a place lie in one slot.
 */
import { openRedisLink, type RedisLinkOptions, type Script } from "@todoke/redis";
import { openEncryption } from "./encryption.ts";
import { EndedAtProvider, UserNotKnown } from "./errors.ts";
import type {
  KnownUser,
  ListedSession,
  OnceKind,
  ProviderTokens,
  Session,
  SessionSettings,
  SessionStore,
} from "./index.ts";
import { draftOf, logoutNamesOf, onceHashOf, onceName, refreshInMs, untilOf } from "./kept.ts";
import * as scripts from "./redis-scripts.ts";
import { tokenHashOf } from "./token.ts";

export interface RedisSessionsOptions extends RedisLinkOptions {
  readonly settings: SessionSettings;
  /** What the keys begin with: gateways that share a Redis and no sessions have a place each. */
  readonly place?: string;
}

/** As the scripts write it; times are milliseconds of Redis' clock. */
interface SessionRecord {
  readonly id: string;
  readonly user: string;
  readonly client: Session["client"];
  readonly user_agent?: string;
  readonly created: number;
  readonly seen: number;
  readonly ends: number;
  readonly due?: number;
  /** When the user proved who they are at the provider, by its clock. */
  readonly authenticated?: number;
}

/** Looked at by one script, which holds everybody up while it runs: about two milliseconds. */
const removedAtOnceMax = 100;

export function redisSessions({ settings, place = "todoke:sessions", ...link }: RedisSessionsOptions): SessionStore {
  const { idleMs, absoluteMs, perUserMax } = settings;
  const encryption = openEncryption(settings.secrets);
  const redis = openRedisLink(link);
  const keys = scripts.keysOf(place);

  /** Runs a script on the sessions, and on keys of its own. Nothing is written as "". */
  const askWith = (script: Script, more: readonly string[], args: readonly (string | number | null | undefined)[]) =>
    redis.run(script, { keys: [...keys, ...more], arguments: [idleMs, ...args].map((arg) => String(arg ?? "")) });
  const ask = (script: Script, ...args: Parameters<typeof askWith>[2]) => askWith(script, [], args);
  const count = async (...asked: Parameters<typeof ask>) => Number(await ask(...asked));
  const logoutKey = (name: Buffer) => `{${place}}:ended:${name.toString("hex")}`;

  const once = (kind: OnceKind, name: string) => [`{${place}}:${kind}:${onceHashOf(kind, name).toString("hex")}`];
  const opened = (sealed: unknown, name: string) =>
    typeof sealed === "string" ? encryption.open(Buffer.from(sealed, "base64"), name) : undefined;

  return {
    clock: () => count(scripts.clock),

    async create(session) {
      const draft = draftOf(session, encryption);
      const sealed = draft.sealedTokens.toString("base64");
      const { ofSubject, ofSession } = draft.logouts;
      const logouts = [ofSubject, ofSession].filter((name) => name !== null).map(logoutKey);
      const args = [recordOf(draft), sealed, draft.refreshInMs, absoluteMs, perUserMax, draft.begunAtMs];
      const made = await askWith(scripts.create, logouts, args);
      if (made === -1) throw new EndedAtProvider("the provider ended this log-in before it became a session");
      if (made === 0) throw new UserNotKnown(`user ${draft.userId} is not known, or was deleted`);
      return { token: draft.token, sessionId: draft.sessionId };
    },

    async find(token) {
      const hash = tokenHashOf(token);
      const found = hash && (await ask(scripts.find, hash.toString("hex"), idleMs / 20));
      return found ? sessionOf(found as [string, string, number]) : undefined;
    },

    async list(userId) {
      const records = ((await ask(scripts.list, userId)) as string[]).map((text): SessionRecord => JSON.parse(text));
      return records.sort((a, b) => b.created - a.created || (a.id < b.id ? 1 : -1)).map(listedOf);
    },

    end: async (userId, sessionId) => (await count(scripts.endOne, userId, sessionId)) > 0,

    endAll: (userId, { except } = {}) => count(scripts.endAll, userId, except),

    async endByProvider(logout) {
      const { issuer, subject, providerSession, tokenId, rememberMs } = logout;
      const { ofSession, ofSubject } = logoutNamesOf(logout);
      const name = ofSession ?? ofSubject;
      if (!name) return 0;
      const sealed = encryption.seal(true, onceName("logout", tokenId)).toString("base64");
      const which = ofSession ? ["p", providerSession] : ["s", subject];
      const args = [issuer, ...which, subject, sealed, Math.ceil(rememberMs)];
      const ended = await askWith(scripts.endByProvider, [...once("logout", tokenId), logoutKey(name)], args);
      return ended === -1 ? undefined : Number(ended);
    },

    async tokensOf(sessionId) {
      return opened(await ask(scripts.tokensOf, sessionId), sessionId) as ProviderTokens | undefined;
    },

    async know(user) {
      const { userId, version, status, roles } = user;
      const until = untilOf(user);
      const known: Known = { version, status, roles, ...(until !== undefined && { until }) };
      await ask(scripts.know, userId, version, status, JSON.stringify(known));
    },

    async takeRefresh(sessionId, holdMs) {
      const turn = (await ask(scripts.takeRefresh, sessionId, holdMs)) as [string, number, string] | null;
      const tokens = opened(turn?.[2], sessionId) as ProviderTokens | undefined;
      return turn && tokens ? { sessionId, issuer: turn[0], tokens, epoch: turn[1] } : undefined;
    },

    async saveTokens({ sessionId, epoch }, tokens) {
      const sealed = encryption.seal(tokens, sessionId).toString("base64");
      return (await count(scripts.endRefresh, sessionId, epoch, refreshInMs(tokens), sealed)) === 1;
    },

    async giveUpRefresh({ sessionId, epoch }, againMs) {
      await ask(scripts.endRefresh, sessionId, epoch, againMs, null);
    },

    endRefused: async ({ sessionId, epoch }) => (await count(scripts.endRefused, sessionId, epoch)) > 0,

    async put(kind, name, value, ttlMs) {
      const sealed = encryption.seal(value, onceName(kind, name)).toString("base64");
      const input = { keys: once(kind, name), arguments: [sealed, String(Math.ceil(ttlMs))] };
      return (await redis.run(scripts.put, input)) === 1;
    },

    async take(kind, name) {
      return opened(await redis.run(scripts.take, { keys: once(kind, name), arguments: [] }), onceName(kind, name));
    },

    async removeEnded() {
      for (let all = 0; ; ) {
        const [lookedAt, removed] = (await ask(scripts.removeEnded, removedAtOnceMax)) as [number, number];
        all += removed;
        if (lookedAt < removedAtOnceMax) return all;
      }
    },

    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

type Known = Pick<KnownUser, "version" | "status" | "roles"> & { readonly until?: string };

/** What the script adds its times to. */
function recordOf(draft: ReturnType<typeof draftOf>): string {
  return JSON.stringify({
    id: draft.sessionId,
    token: draft.tokenHash.toString("hex"),
    user: draft.userId,
    client: draft.client,
    issuer: draft.issuer,
    subject: draft.subject,
    provider_session: draft.providerSession ?? undefined,
    user_agent: draft.userAgent ?? undefined,
    authenticated: draft.authenticatedAtMs ?? undefined,
  });
}

function sessionOf([session, user, now]: readonly [string, string, number]): Session {
  const { id, user: userId, client, due, authenticated }: SessionRecord = JSON.parse(session);
  const { status, roles, until }: Known = JSON.parse(user);
  const isOver = until !== undefined && Date.parse(until) <= now;
  return {
    sessionId: id,
    userId,
    client,
    status: isOver ? "ACTIVE" : status,
    roles,
    ...(until !== undefined && !isOver && { suspendedUntil: until }),
    refreshDue: due !== undefined && due <= now,
    ...(authenticated !== undefined && { authenticatedAgoMs: now - authenticated }),
  };
}

function listedOf({ id, client, user_agent, created, seen, ends }: SessionRecord): ListedSession {
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
