/**
 * Sessions in PostgreSQL.
 *
 * A look-up is two index probes, and look-ups that arrive while one runs share the next statement. `last_seen_at` is
 * written only when it is at least a twentieth of the idle time old, in the background. So an unused session ends after
 * the idle time or up to a twentieth of it sooner, never later.
 */

import { createBatcher } from "@todoke/kernel/batcher";
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { deleteFinished } from "@todoke/kernel/retention";
import type { SessionSettings } from "../config.ts";
import { insertOneTime, takeOneTime } from "../store/one-time.ts";
import { isEndedAtProvider, lockLogouts, upsertProviderLogout } from "../store/provider-logouts.ts";
import { claimRefresh, settleRefresh } from "../store/session-refresh.ts";
import * as sql from "../store/sessions.ts";
import { lockUser, selectRoles, upsertUser } from "../store/users.ts";
import { openEncryption } from "./encryption.ts";
import { EndedAtProviderError, UnknownUserError } from "./errors.ts";
import type { OneTimeKind, ProviderTokens, Session, SessionStore } from "./index.ts";
import { hashOneTimeName, isSessionId, oneTimeName, refreshInMs, toLogoutNames, toSessionRow } from "./session-row.ts";
import { hashToken } from "./token.ts";

export function postgresSessions(db: Db, settings: SessionSettings): SessionStore {
  const { idleMs } = settings;
  const times = { idleMs, seenIntervalMs: idleMs / 20 };
  const encryption = openEncryption(settings.secrets);
  const filter = (which: sql.SessionFilter["which"], ...values: readonly (string | null)[]) => ({
    which,
    values,
    idleMs,
  });
  const end = (...where: Parameters<typeof filter>) => sql.deleteSessions(db, filter(...where));
  const open = (sealed: Buffer | undefined, name: string) => sealed && encryption.open(sealed, name);

  const markSeen = createBatcher<sql.Seen, true>({
    run: async (seen) => {
      await sql.markSeen(db, seen, idleMs);
      return seen.map(() => true);
    },
  });
  let lastMark: Promise<unknown> = Promise.resolve();

  const findLive = createBatcher<Buffer, Session | null>({
    run: async (hashes) => {
      const rows = await sql.selectLiveSessions(db, hashes, times);
      for (const row of rows) {
        // A failed write needs no retry: the next look-up finds the same old time and writes again.
        if (row.seen_long_ago)
          lastMark = markSeen({ sessionId: row.session_id, seenAt: row.seen_at }).catch(() => undefined);
      }
      const found = new Map(rows.map((row) => [row.ordinal, toSession(row)]));
      return hashes.map((_, index) => found.get(index + 1) ?? null);
    },
  });

  const oneTimeRow = (kind: OneTimeKind, name: string, { value, ttlMs }: { value: unknown; ttlMs: number }) => ({
    kind,
    nameHash: hashOneTimeName(kind, name),
    sealed: encryption.seal(value, oneTimeName(kind, name)),
    ttlMs,
  });

  return {
    clock: () => sql.selectClock(db),

    async create(session) {
      const row = toSessionRow(session, encryption);
      const logouts = Object.values(row.logouts).filter((name) => name !== null);
      await transaction(db, async (tx) => {
        await lockLogouts(tx, logouts, "shared");
        if (await isEndedAtProvider(tx, row))
          throw new EndedAtProviderError("the provider ended this login before its session was created");
        if (!(await lockUser(tx, row.userId))) throw new UnknownUserError(`user ${row.userId} is unknown or deleted`);
        await sql.insertSession(tx, row, settings);
      });
      return { token: row.token, sessionId: row.sessionId };
    },

    async find(token) {
      const hash = hashToken(token);
      return hash && ((await findLive(hash)) ?? undefined);
    },

    list: (userId) => sql.selectSessions(db, userId, settings),

    getRoles: (userId) => selectRoles(db, userId),

    end: async (userId, sessionId) => isSessionId(sessionId) && (await end("one", userId, sessionId)) > 0,

    endAll: (userId, { except } = {}) => end("allOfUser", userId, except ?? null),

    async endByProvider(logout) {
      const { issuer, subject, providerSession, tokenId, rememberMs } = logout;
      const { ofSession, ofSubject } = toLogoutNames(logout);
      const name = ofSession ?? ofSubject;
      if (!name) return 0;
      const ending = ofSession
        ? filter("ofProviderSession", issuer, providerSession ?? null, subject ?? null)
        : filter("allOfSubject", issuer, subject ?? null);
      return transaction(db, async (tx) => {
        const isNew = await insertOneTime(tx, oneTimeRow("logout", tokenId, { value: true, ttlMs: rememberMs }));
        if (!isNew) return undefined;
        await lockLogouts(tx, [name], "exclusive");
        await upsertProviderLogout(tx, name, rememberMs);
        return sql.deleteSessions(tx, ending);
      });
    },

    getIdentity: (sessionId) => sql.selectIdentity(db, sessionId, idleMs),
    moveToUser: (move) => sql.updateUserOfSession(db, move, idleMs),

    async getTokens(sessionId) {
      return open(await sql.selectTokens(db, sessionId, idleMs), sessionId) as ProviderTokens | undefined;
    },

    async saveUser(user, outerTx) {
      if (user.status === "ACTIVE") return void (await upsertUser(outerTx ?? db, user));
      // Two statements: the second one also sees a session that was created while the first waited for its lock.
      const shutOut = async (tx: Tx) => {
        if (await upsertUser(tx, user)) await sql.deleteSessions(tx, filter("allOfUser", user.userId, null));
      };
      await (outerTx ? shutOut(outerTx) : transaction(db, shutOut));
    },

    async claimRefresh(sessionId, leaseMs) {
      const row = await claimRefresh(db, { sessionId, idleMs, leaseMs });
      const tokens = open(row?.sealed, sessionId) as ProviderTokens | undefined;
      return row && tokens && { sessionId, issuer: row.issuer, tokens, epoch: row.epoch };
    },

    async saveTokens({ sessionId, epoch }, tokens) {
      const sealed = encryption.seal(tokens, sessionId);
      return settleRefresh(db, { sessionId, epoch, idleMs, sealed, dueInMs: refreshInMs(tokens) });
    },

    async postponeRefresh({ sessionId, epoch }, delayMs) {
      await settleRefresh(db, { sessionId, epoch, idleMs, sealed: null, dueInMs: delayMs });
    },

    endOnRefusedRefresh: async ({ sessionId, epoch }) => (await end("ofRefresh", sessionId, String(epoch))) > 0,

    putOneTime: (kind, name, value, ttlMs) => insertOneTime(db, oneTimeRow(kind, name, { value, ttlMs })),

    async takeOneTime(kind, name) {
      return open(await takeOneTime(db, kind, hashOneTimeName(kind, name)), oneTimeName(kind, name));
    },

    async deleteExpired() {
      let deleted = 0;
      for (const policy of sql.expired) deleted += await deleteFinished(db, policy);
      return deleted;
    },

    /** The caller owns the pool. */
    async [Symbol.asyncDispose]() {
      await lastMark;
    },
  };
}

function toSession(row: sql.LiveSessionRow): Session {
  return {
    sessionId: row.session_id,
    userId: row.user_id,
    client: row.client,
    status: row.status,
    roles: row.roles,
    ...(row.suspended_until !== null && { suspendedUntil: row.suspended_until }),
    refreshDue: row.refresh_due,
    ...(row.authenticated_ago_ms !== null && { authenticatedAgoMs: row.authenticated_ago_ms }),
  };
}
