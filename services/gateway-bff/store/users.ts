/** The SQL of the local copies of account's users. */
import type { Role } from "@todoke/http";
import type { Queryable, Tx } from "@todoke/kernel/db";
import type { UserSnapshot } from "../sessions/index.ts";
import { suspensionEnd } from "../sessions/session-row.ts";

/** Returns false if there is no such user. Until the transaction ends, no other one creates a session of the user. */
export async function lockUser(tx: Tx, userId: string): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "lock known user",
    text: `select from known_users where user_id = $1 and status <> 'DELETED' for no key update`,
    values: [userId],
  });
  return rowCount === 1;
}

/** Returns false if the stored version is the same or higher: then nothing changes. */
export async function upsertUser(db: Queryable, user: UserSnapshot): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "know user",
    text: `insert into known_users as k (user_id, status, roles, suspended_until, account_version)
           values ($1, $2, $3::text[], $4::timestamptz, $5)
           on conflict (user_id) do update
              set status = excluded.status, roles = excluded.roles, suspended_until = excluded.suspended_until,
                  account_version = excluded.account_version
            where k.account_version < excluded.account_version`,
    values: [user.userId, user.status, user.roles, suspensionEnd(user) ?? null, user.version],
  });
  return rowCount === 1;
}

/** None if the user is unknown, suspended or deleted. */
export async function selectRoles(db: Queryable, userId: string): Promise<readonly Role[]> {
  const { rows } = await db.query<{ roles: readonly Role[] }>({
    name: "roles of user",
    text: `select roles from known_users
            where user_id = $1 and (status = 'ACTIVE' or (status = 'SUSPENDED' and suspended_until <= statement_timestamp()))`,
    values: [userId],
  });
  return rows[0]?.roles ?? [];
}
