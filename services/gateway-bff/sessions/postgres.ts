/**
 * Sessions in PostgreSQL, with the promises of the port.
 *
 * Finding one is two index probes; whoever asks while a look-up runs is looked up together with the others by the next.
 * A session is written as seen only when it was last seen a twentieth of the idle time ago or more, and nobody waits for
 * that. So a session that is not used ends after the idle time or up to a twentieth of it sooner, and never later.
 */
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type RetentionPolicy, removeFinished } from "@todoke/kernel/retention";
import { openEncryption } from "./encryption.ts";
import { EndedAtProvider, UserNotKnown } from "./errors.ts";
import type { OnceKind, ProviderTokens, Session, SessionSettings, SessionStore } from "./index.ts";
import { draftOf, isSessionId, logoutNamesOf, onceHashOf, onceName, refreshInMs } from "./kept.ts";
import * as sql from "./postgres-statements.ts";
import * as turns from "./postgres-turns.ts";
import { tokenHashOf } from "./token.ts";

/** Sessions that ended by not being used stay until their age would have ended them; nothing finds them meanwhile. */
const over: readonly RetentionPolicy[] = [
  { table: "sessions", finished: "true", since: "ends_at", keepMs: 0 },
  { table: "one_time", finished: "true", since: "expires_at", keepMs: 0 },
  { table: "provider_logouts", finished: "true", since: "expires_at", keepMs: 0 },
];

export function postgresSessions(db: Db, settings: SessionSettings): SessionStore {
  const { idleMs } = settings;
  const times = { idleMs, seenEveryMs: idleMs / 20 };
  const encryption = openEncryption(settings.secrets);
  const endingOf = (which: sql.Ending["which"], ...values: readonly (string | null)[]) => ({ which, values, idleMs });
  const end = (...ending: Parameters<typeof endingOf>) => sql.deleteSessions(db, endingOf(...ending));
  const opened = (sealed: Buffer | undefined, name: string) => sealed && encryption.open(sealed, name);

  const noteSeen = gather<sql.Seen, true>({
    run: async (seen) => {
      await sql.updateSeen(db, seen, idleMs);
      return seen.map(() => true);
    },
  });
  let lastNote: Promise<unknown> = Promise.resolve();

  const findLiving = gather<Buffer, Session | null>({
    run: async (hashes) => {
      const rows = await sql.selectLiving(db, hashes, times);
      for (const row of rows) {
        // One that is lost is made up for by the next look-up, which finds the session as little seen as this one.
        if (row.seen_long_ago)
          lastNote = noteSeen({ sessionId: row.session_id, seenAt: row.seen_at }).catch(() => undefined);
      }
      const found = new Map(rows.map((row) => [row.place, sessionOf(row)]));
      return hashes.map((_, index) => found.get(index + 1) ?? null);
    },
  });

  const onceRow = (
    kind: OnceKind,
    name: string,
    { value, ttlMs }: { readonly value: unknown; readonly ttlMs: number },
  ) => ({
    kind,
    nameHash: onceHashOf(kind, name),
    sealed: encryption.seal(value, onceName(kind, name)),
    ttlMs,
  });

  return {
    clock: () => sql.selectClock(db),

    async create(session) {
      const draft = draftOf(session, encryption);
      const logouts = Object.values(draft.logouts).filter((name) => name !== null);
      await transaction(db, async (tx) => {
        await sql.lockLogouts(tx, logouts, "shared");
        if (await sql.isEndedAtProvider(tx, draft))
          throw new EndedAtProvider("the provider ended this log-in before it became a session");
        if (!(await sql.lockKnownUser(tx, draft.userId)))
          throw new UserNotKnown(`user ${draft.userId} is not known, or was deleted`);
        await sql.insertSession(tx, draft, settings);
      });
      return { token: draft.token, sessionId: draft.sessionId };
    },

    async find(token) {
      const hash = tokenHashOf(token);
      return hash && ((await findLiving(hash)) ?? undefined);
    },

    list: (userId) => sql.selectSessions(db, userId, settings),

    end: async (userId, sessionId) => isSessionId(sessionId) && (await end("one", userId, sessionId)) > 0,

    endAll: (userId, { except } = {}) => end("allOfUser", userId, except ?? null),

    async endByProvider(logout) {
      const { issuer, subject, providerSession, tokenId, rememberMs } = logout;
      const { ofSession, ofSubject } = logoutNamesOf(logout);
      const name = ofSession ?? ofSubject;
      if (!name) return 0;
      const ending = ofSession
        ? endingOf("ofProviderSession", issuer, providerSession ?? null, subject ?? null)
        : endingOf("allOfSubject", issuer, subject ?? null);
      return transaction(db, async (tx) => {
        const isNew = await turns.insertOnceIn(tx, onceRow("logout", tokenId, { value: true, ttlMs: rememberMs }));
        if (!isNew) return undefined;
        await sql.lockLogouts(tx, [name], "exclusive");
        await sql.upsertProviderLogout(tx, name, rememberMs);
        return sql.deleteSessionsIn(tx, ending);
      });
    },

    async tokensOf(sessionId) {
      return opened(await turns.selectTokens(db, sessionId, idleMs), sessionId) as ProviderTokens | undefined;
    },

    async know(user, within) {
      if (user.status === "ACTIVE") return void (await sql.upsertKnownUser(within ?? db, user));
      // Two statements: what the second one ends includes a session that was made while the first waited for its lock.
      const shutOut = async (tx: Tx) => {
        if (await sql.upsertKnownUser(tx, user))
          await sql.deleteSessionsIn(tx, endingOf("allOfUser", user.userId, null));
      };
      await (within ? shutOut(within) : transaction(db, shutOut));
    },

    async takeRefresh(sessionId, holdMs) {
      const turn = await turns.takeTurn(db, { sessionId, idleMs, holdMs });
      const tokens = opened(turn?.sealed, sessionId) as ProviderTokens | undefined;
      return turn && tokens && { sessionId, issuer: turn.issuer, tokens, epoch: turn.epoch };
    },

    async saveTokens({ sessionId, epoch }, tokens) {
      const sealed = encryption.seal(tokens, sessionId);
      return turns.endTurn(db, { sessionId, epoch, idleMs, sealed, dueInMs: refreshInMs(tokens) });
    },

    async giveUpRefresh({ sessionId, epoch }, againMs) {
      await turns.endTurn(db, { sessionId, epoch, idleMs, sealed: null, dueInMs: againMs });
    },

    endRefused: async ({ sessionId, epoch }) => (await end("ofRefresh", sessionId, String(epoch))) > 0,

    put: (kind, name, value, ttlMs) => turns.insertOnce(db, onceRow(kind, name, { value, ttlMs })),

    async take(kind, name) {
      return opened(await turns.deleteOnce(db, kind, onceHashOf(kind, name)), onceName(kind, name));
    },

    async removeEnded() {
      let removed = 0;
      for (const policy of over) removed += await removeFinished(db, policy);
      return removed;
    },

    /** The pool is the caller's. */
    async [Symbol.asyncDispose]() {
      await lastNote;
    },
  };
}

function sessionOf(row: sql.FoundRow): Session {
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
