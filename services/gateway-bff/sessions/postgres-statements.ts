/**
 * The SQL of sessions in PostgreSQL. A session lives while neither its age nor its idle time is over, by the database's
 * clock; every statement that names one says so, whether or not the row has been removed yet.
 *
 * Whoever locks several sessions locks them in the order of their ids, so that no two statements can wait for each other.
 */
import type { Role } from "@todoke/http";
import { type Db, type Queryable, statement, type Tx, utcText } from "@todoke/kernel/db";
import type { ClientKind, KnownUser, ListedSession, UserStatus } from "./index.ts";
import { type Draft, untilOf } from "./kept.ts";

const ms = (parameter: string) => `${parameter}::float8 * interval '1 millisecond'`;
/** So many milliseconds from now. */
export const after = (parameter: string): string => `statement_timestamp() + ${ms(parameter)}`;
/** The time that so many milliseconds since 1970 are. */
const timeOf = (parameter: string) => `to_timestamp(${parameter}::float8 / 1000)`;
/** True of a session that has not ended. */
export const living = (idleMs: string): string =>
  `(ends_at > statement_timestamp() and last_seen_at > statement_timestamp() - ${ms(idleMs)})`;

export interface FoundRow {
  readonly place: number;
  readonly session_id: string;
  readonly user_id: string;
  readonly client: ClientKind;
  readonly refresh_due: boolean;
  /** It was last seen so long ago that being seen now is worth a write. */
  readonly seen_long_ago: boolean;
  /** When it was seen by this statement, exactly. */
  readonly seen_at: string;
  readonly status: UserStatus;
  readonly roles: readonly Role[];
  readonly suspended_until: string | null;
  readonly authenticated_ago_ms: number | null;
}

/** Two index probes for each token, whatever the planner believes of the tables. */
export const findText = `
select i.place::int, s.session_id, s.user_id, s.client, s.refresh_due, s.seen_long_ago, s.authenticated_ago_ms,
       statement_timestamp()::text as seen_at, u.status, u.roles, u.suspended_until
  from unnest($1::bytea[]) with ordinality as i(token_sha256, place)
 cross join lateral (
         select session_id, user_id, client,
                coalesce(refresh_due_at <= statement_timestamp(), false) as refresh_due,
                last_seen_at <= statement_timestamp() - ${ms("$3")} as seen_long_ago,
                (extract(epoch from statement_timestamp() - authenticated_at) * 1000)::float8 as authenticated_ago_ms
           from sessions where token_sha256 = i.token_sha256 and ${living("$2")} limit 1) s
 cross join lateral (
         select case when suspended_until <= statement_timestamp() then 'ACTIVE' else k.status end as status, roles,
                case when suspended_until > statement_timestamp() then ${utcText("suspended_until")} end
                  as suspended_until
           from known_users k where k.user_id = s.user_id and k.status <> 'DELETED' limit 1) u`;

export interface IdleTimes {
  readonly idleMs: number;
  /** A session that was seen less than this ago is not written again. */
  readonly seenEveryMs: number;
}

export async function selectLiving(db: Db, hashes: readonly Buffer[], times: IdleTimes): Promise<FoundRow[]> {
  const values = [hashes, times.idleMs, times.seenEveryMs];
  return (await db.query<FoundRow>({ name: "find sessions", text: findText, values })).rows;
}

export interface Seen {
  readonly sessionId: string;
  readonly seenAt: string;
}

export const seenText = `
update sessions
   set last_seen_at = greatest(last_seen_at, ($2::jsonb ->> session_id::text)::timestamptz)
 where session_id = any(array(
         select session_id from sessions where session_id = any($1::uuid[]) order by session_id for update))
   and ${living("$3")}`;

/** Notes when sessions were seen. What has ended meanwhile stays ended. */
export async function updateSeen(db: Db, seen: readonly Seen[], idleMs: number): Promise<void> {
  const at = Object.fromEntries(seen.map(({ sessionId, seenAt }) => [sessionId, seenAt]));
  await statement(db, { name: "sessions seen", text: seenText, values: [Object.keys(at), JSON.stringify(at), idleMs] });
}

/** Whether there is such a user. Until the transaction ends, nobody else adds a session of theirs or changes them. */
export async function lockKnownUser(tx: Tx, userId: string): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "lock known user",
    text: `select from known_users where user_id = $1 and status <> 'DELETED' for no key update`,
    values: [userId],
  });
  return rowCount === 1;
}

export interface SessionBounds {
  readonly idleMs: number;
  readonly absoluteMs: number;
  readonly perUserMax: number;
}

/** Ends the user's oldest sessions, so that there is room for this one. Needs `lockKnownUser`, or two may find the room. */
export async function insertSession(tx: Tx, draft: Draft, bounds: SessionBounds): Promise<void> {
  await tx.query({
    name: "insert session",
    text: `with ended as (
             delete from sessions where session_id = any(array(
               select session_id from sessions where user_id = $3
                order by ${living("$11")} desc, created_at desc, session_id desc offset $13::int - 1))
           )
           insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_session, user_agent,
                                 provider_tokens, refresh_due_at, created_at, last_seen_at, ends_at, authenticated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, ${after("$10")},
                   statement_timestamp(), statement_timestamp(), ${after("$12")}, ${timeOf("$14")})`,
    values: [
      ...[draft.sessionId, draft.tokenHash, draft.userId, draft.client, draft.issuer, draft.subject],
      ...[draft.providerSession, draft.userAgent, draft.sealedTokens, draft.refreshInMs],
      ...[bounds.idleMs, bounds.absoluteMs, bounds.perUserMax, draft.authenticatedAtMs],
    ],
  });
}

/**
 * A log-in and the log-out of it at the provider run one after the other: whichever is second sees what the first has done.
 * A log-in asks before it locks any row, and a log-out for one name only, so that no two can wait for each other.
 */
export async function lockLogouts(tx: Tx, names: readonly Buffer[], mode: "shared" | "exclusive"): Promise<void> {
  const lock = mode === "shared" ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock";
  await tx.query({
    name: `lock provider log-outs ${mode}`,
    text: `select ${lock}(hashtextextended('provider log-out ' || current_schema() || ' ' || encode(name, 'hex'), 0))
             from unnest($1::bytea[]) as name`,
    values: [names],
  });
}

/** Whether the provider has ended this log-in. Needs `lockLogouts` in a statement before this one. */
export async function isEndedAtProvider(tx: Tx, { logouts, begunAtMs }: Draft): Promise<boolean> {
  const { rows } = await tx.query<{ ended: boolean }>({
    name: "is ended at provider",
    text: `select exists (select from provider_logouts where expires_at > statement_timestamp() and (
                    name_sha256 = $1 or (name_sha256 = $2 and ended_at >= ${timeOf("$3")}))) as ended`,
    values: [logouts.ofSession, logouts.ofSubject, begunAtMs],
  });
  return rows[0]?.ended ?? false;
}

export async function upsertProviderLogout(tx: Tx, name: Buffer, rememberMs: number): Promise<void> {
  await tx.query({
    name: "remember provider log-out",
    text: `insert into provider_logouts (name_sha256, ended_at, expires_at)
           values ($1, statement_timestamp(), ${after("$2")})
           on conflict (name_sha256) do update set ended_at = excluded.ended_at, expires_at = excluded.expires_at`,
    values: [name, rememberMs],
  });
}

/** Newest first. */
export async function selectSessions(db: Db, userId: string, bounds: SessionBounds): Promise<ListedSession[]> {
  type Row = Omit<ListedSession, "userAgent"> & { readonly userAgent: string | null };
  const { rows } = await db.query<Row>({
    name: "select sessions",
    text: `select session_id as "sessionId", client, user_agent as "userAgent", ${utcText("created_at")} as "createdAt",
                  ${utcText("last_seen_at")} as "lastSeenAt", ${utcText("ends_at")} as "endsAt"
             from sessions where user_id = $1 and ${living("$2")}
            order by sessions.created_at desc, session_id desc limit $3`,
    values: [userId, bounds.idleMs, bounds.perUserMax],
  });
  return rows.map(({ userAgent, ...row }) => (userAgent === null ? row : { ...row, userAgent }));
}

/** Which sessions end, in SQL; `$2` and on are the values it is given. */
const endings = {
  one: `user_id = $2 and session_id = $3::uuid`,
  allOfUser: `user_id = $2 and session_id is distinct from $3::uuid`,
  allOfSubject: `issuer = $2 and subject = $3`,
  ofRefresh: `session_id = $2::uuid and refresh_epoch = $3::bigint`,
  ofProviderSession: `issuer = $2 and provider_session = $3 and subject = coalesce($4, subject)`,
};

export interface Ending {
  readonly which: keyof typeof endings;
  readonly values: readonly (string | null)[];
  readonly idleMs: number;
}

const deletionOf = ({ which, values, idleMs }: Ending) => ({
  name: `end sessions ${which}`,
  text: `with ended as (
           delete from sessions where session_id = any(array(
             select session_id from sessions where ${endings[which]} order by session_id for update))
           returning ${living("$1")} as lived)
         select count(*) filter (where lived)::int as ended from ended`,
  values: [idleMs, ...values],
});

/** How many of them lived. */
export async function deleteSessions(db: Db, ending: Ending): Promise<number> {
  const { rows } = await statement<{ ended: number }>(db, deletionOf(ending));
  return rows[0]?.ended ?? 0;
}

/** The same, as a part of a transaction. */
export async function deleteSessionsIn(tx: Tx, ending: Ending): Promise<number> {
  const { rows } = await tx.query<{ ended: number }>(deletionOf(ending));
  return rows[0]?.ended ?? 0;
}

export async function selectClock(db: Db): Promise<number> {
  const { rows } = await db.query<{ ms: number }>({
    name: "select clock",
    text: `select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
  });
  return rows[0]?.ms ?? 0;
}

/** Whether it was news: a version that is not higher than what is known changes nothing. */
export async function upsertKnownUser(db: Queryable, user: KnownUser): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "know user",
    text: `insert into known_users as k (user_id, status, roles, suspended_until, account_version)
           values ($1, $2, $3::text[], $4::timestamptz, $5)
           on conflict (user_id) do update
              set status = excluded.status, roles = excluded.roles, suspended_until = excluded.suspended_until,
                  account_version = excluded.account_version
            where k.account_version < excluded.account_version`,
    values: [user.userId, user.status, user.roles, untilOf(user) ?? null, user.version],
  });
  return rowCount === 1;
}
