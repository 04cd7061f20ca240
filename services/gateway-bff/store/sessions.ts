/**
 * The SQL of sessions. A session is live while neither its age nor its idle time is over, by the database's clock. Every
 * statement repeats that condition, because expired rows are deleted later.
 *
 * Statements that lock several sessions lock them in the order of their ids, so that no two can deadlock.
 */
import type { Role } from "@todoke/http";
import { type Db, type Queryable, rfc3339Sql, runStatement, type Tx } from "@todoke/kernel/db";
import type { RetentionPolicy } from "@todoke/kernel/retention";
import type { SessionSettings } from "../config.ts";
import type { ClientKind, ListedSession, SessionMove, UserStatus } from "../sessions/index.ts";
import type { SessionRow } from "../sessions/session-row.ts";

const ms = (parameter: string) => `${parameter}::float8 * interval '1 millisecond'`;
export const msFromNow = (parameter: string): string => `statement_timestamp() + ${ms(parameter)}`;
/** From milliseconds since 1970. */
export const toTimestamp = (parameter: string): string => `to_timestamp(${parameter}::float8 / 1000)`;
export const isLive = (idleMs: string): string =>
  `(ends_at > statement_timestamp() and last_seen_at > statement_timestamp() - ${ms(idleMs)})`;

export interface LiveSessionRow {
  readonly ordinal: number;
  readonly session_id: string;
  readonly user_id: string;
  readonly client: ClientKind;
  readonly refresh_due: boolean;
  /** The last write of `last_seen_at` is so old that it is worth another. */
  readonly seen_long_ago: boolean;
  /** The exact time of this statement. */
  readonly seen_at: string;
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  readonly suspended_until: string | null;
  readonly authenticated_ago_ms: number | null;
}

/** Two index probes per token, also on stale statistics. */
export const findSql = `
select i.ordinal::int, s.session_id, s.user_id, s.client, s.refresh_due, s.seen_long_ago, s.authenticated_ago_ms,
       statement_timestamp()::text as seen_at, u.status, u.roles, u.suspended_until
  from unnest($1::bytea[]) with ordinality as i(token_sha256, ordinal)
 cross join lateral (
         select session_id, user_id, client,
                coalesce(refresh_due_at <= statement_timestamp(), false) as refresh_due,
                last_seen_at <= statement_timestamp() - ${ms("$3")} as seen_long_ago,
                (extract(epoch from statement_timestamp() - authenticated_at) * 1000)::float8 as authenticated_ago_ms
           from sessions where token_sha256 = i.token_sha256 and ${isLive("$2")} limit 1) s
 cross join lateral (
         select case when suspended_until <= statement_timestamp() then 'ACTIVE' else k.status end as status, roles,
                case when suspended_until > statement_timestamp() then ${rfc3339Sql("suspended_until")} end
                  as suspended_until
           from known_users k where k.user_id = s.user_id and k.status <> 'DELETED' limit 1) u`;

export interface IdleTimes {
  readonly idleMs: number;
  /** A session that was seen more recently than this is not written again. */
  readonly seenIntervalMs: number;
}

export async function selectLiveSessions(
  db: Db,
  hashes: readonly Buffer[],
  { idleMs, seenIntervalMs }: IdleTimes,
): Promise<LiveSessionRow[]> {
  const values = [hashes, idleMs, seenIntervalMs];
  return (await db.query<LiveSessionRow>({ name: "find sessions", text: findSql, values })).rows;
}

export interface Seen {
  readonly sessionId: string;
  readonly seenAt: string;
}

export const markSeenSql = `
update sessions
   set last_seen_at = greatest(last_seen_at, ($2::jsonb ->> session_id::text)::timestamptz)
 where session_id = any(array(
         select session_id from sessions where session_id = any($1::uuid[]) order by session_id for update))
   and ${isLive("$3")}`;

/** A session that has ended stays ended. */
export async function markSeen(db: Db, seen: readonly Seen[], idleMs: number): Promise<void> {
  const at = Object.fromEntries(seen.map(({ sessionId, seenAt }) => [sessionId, seenAt]));
  const values = [Object.keys(at), JSON.stringify(at), idleMs];
  await runStatement(db, { name: "sessions seen", text: markSeenSql, values });
}

/** Deletes the user's oldest sessions to stay within the limit. Needs `lockUser`, or two logins could use the same room. */
export async function insertSession(tx: Tx, row: SessionRow, settings: SessionSettings): Promise<void> {
  await tx.query({
    name: "insert session",
    text: `with ended as (
             delete from sessions where session_id = any(array(
               select session_id from sessions where user_id = $3
                order by ${isLive("$11")} desc, created_at desc, session_id desc offset $13::int - 1))
           )
           insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_session, user_agent,
                                 provider_tokens, refresh_due_at, created_at, last_seen_at, ends_at, authenticated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, ${msFromNow("$10")},
                   statement_timestamp(), statement_timestamp(), ${msFromNow("$12")}, ${toTimestamp("$14")})`,
    values: [
      ...[row.sessionId, row.tokenHash, row.userId, row.client, row.issuer, row.subject],
      ...[row.providerSession, row.userAgent, row.sealedTokens, row.refreshInMs],
      ...[settings.idleMs, settings.absoluteMs, settings.perUserMax, row.authenticatedAtMs],
    ],
  });
}

/** Newest first. */
export async function selectSessions(db: Db, userId: string, settings: SessionSettings): Promise<ListedSession[]> {
  type Row = Omit<ListedSession, "userAgent"> & { readonly userAgent: string | null };
  const { rows } = await db.query<Row>({
    name: "select sessions",
    text: `select session_id as "sessionId", client, user_agent as "userAgent", ${rfc3339Sql("created_at")} as "createdAt",
                  ${rfc3339Sql("last_seen_at")} as "lastSeenAt", ${rfc3339Sql("ends_at")} as "endsAt"
             from sessions where user_id = $1 and ${isLive("$2")}
            order by sessions.created_at desc, session_id desc limit $3`,
    values: [userId, settings.idleMs, settings.perUserMax],
  });
  return rows.map(({ userAgent, ...row }) => (userAgent === null ? row : { ...row, userAgent }));
}

/** Which sessions are deleted; their values start at `$2`. */
const conditions = {
  one: `user_id = $2 and session_id = $3::uuid`,
  allOfUser: `user_id = $2 and session_id is distinct from $3::uuid`,
  allOfSubject: `issuer = $2 and subject = $3`,
  ofRefresh: `session_id = $2::uuid and refresh_epoch = $3::bigint`,
  ofProviderSession: `issuer = $2 and provider_session = $3 and subject = coalesce($4, subject)`,
};

export interface SessionFilter {
  readonly which: keyof typeof conditions;
  readonly values: readonly (string | null)[];
  readonly idleMs: number;
}

/** Returns how many of the deleted sessions were live. */
export async function deleteSessions(db: Db | Tx, { which, values, idleMs }: SessionFilter): Promise<number> {
  const { rows } = await runStatement<{ ended: number }>(db, {
    name: `end sessions ${which}`,
    text: `with ended as (
             delete from sessions where session_id = any(array(
               select session_id from sessions where ${conditions[which]} order by session_id for update))
             returning ${isLive("$1")} as was_live)
           select count(*) filter (where was_live)::int as ended from ended`,
    values: [idleMs, ...values],
  });
  return rows[0]?.ended ?? 0;
}

export async function selectIdentity(
  db: Db,
  sessionId: string,
  idleMs: number,
): Promise<Pick<SessionRow, "issuer" | "subject"> | undefined> {
  const { rows } = await db.query({
    name: "select session identity",
    text: `select issuer, subject from sessions where session_id = $1 and ${isLive("$2")}`,
    values: [sessionId, idleMs],
  });
  return rows[0];
}

/** Returns false if the session has ended or belongs to another user. */
export async function updateUserOfSession(
  db: Db,
  { sessionId, from, to }: SessionMove,
  idleMs: number,
): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "move session",
    text: `update sessions set user_id = $3 where session_id = $1 and user_id in ($2, $3) and ${isLive("$4")}`,
    values: [sessionId, from, to, idleMs],
  });
  return rowCount === 1;
}

export async function selectTokens(db: Db, sessionId: string, idleMs: number): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>({
    name: "select provider tokens",
    text: `select provider_tokens as sealed from sessions where session_id = $1 and ${isLive("$2")}`,
    values: [sessionId, idleMs],
  });
  return rows[0]?.sealed;
}

export async function selectClock(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ ms: number }>({
    name: "select clock",
    text: `select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
  });
  return rows[0]?.ms ?? 0;
}

/** An idle session stays until its age would have ended it; no statement finds it until then. */
export const expired: readonly RetentionPolicy[] = [
  { table: "sessions", finished: "true", since: "ends_at", keepMs: 0 },
  { table: "one_time", finished: "true", since: "expires_at", keepMs: 0 },
  { table: "provider_logouts", finished: "true", since: "expires_at", keepMs: 0 },
];
