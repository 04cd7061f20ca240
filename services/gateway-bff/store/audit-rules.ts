/** Rules between sessions and users. Sessions in Redis are not audited: a session there is only an expiring key. */
import type { AuditSpec } from "@todoke/kernel/audit";
import { type Queryable, rfc3339Sql } from "@todoke/kernel/db";

export const sessionAudit: AuditSpec = {
  checked: { users: "known_users", sessions: "sessions" },
  rules: {
    "no deleted user has a live session": `
    select s.session_id::text as about, format('of the user %s, until %s', s.user_id, s.ends_at) as detail
      from sessions s join known_users k using (user_id)
     where k.status = 'DELETED' and s.ends_at > now()`,
  },
};

export interface InactiveUser {
  readonly user_id: string;
  readonly since: string;
}

export interface OpenSession {
  readonly session_id: string;
  readonly user_id: string;
  /** The status of the user in the gateway's copy. */
  readonly status: string;
  readonly created_at: string;
}

/**
 * Sessions of these users that let them act, or that are older than the suspension. A suspended user may log in, to a session that only
 * shows the suspension.
 */
export async function selectSessionsOfInactive(
  db: Queryable,
  users: readonly InactiveUser[],
): Promise<readonly OpenSession[]> {
  const { rows } = await db.query<OpenSession>(
    `select s.session_id, s.user_id, k.status, ${rfc3339Sql("s.created_at")} as created_at
       from jsonb_to_recordset($1::jsonb) as u(user_id text, since timestamptz)
      cross join lateral (select * from known_users k where k.user_id = u.user_id limit 1) k
      cross join lateral (select * from sessions s where s.user_id = u.user_id limit 100) s
      where s.ends_at > now() and (k.status = 'ACTIVE' or s.created_at < u.since)`,
    [JSON.stringify(users.map(({ user_id, since }) => ({ user_id, since })))],
  );
  return rows;
}
