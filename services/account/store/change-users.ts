/**
 * Writes to existing users, whose rows the caller has locked. Each raises the version by one and leaves all other columns
 * unchanged, including those of an expired suspension that the expiry worker has not ended yet.
 */
import type { StaffRole } from "@todoke/http";
import { rfc3339Sql, type Tx } from "@todoke/kernel/db";

/** Null clears a field; a missing field stays. */
export interface ProfileChange {
  readonly display_name?: string | null;
  readonly locale?: string | null;
  readonly email?: string;
}

const bumpVersion = `version = version + 1, updated_at = now()`;

export async function updateProfile(tx: Tx, userId: string, change: ProfileChange): Promise<void> {
  await tx.query({
    name: "update profile",
    text: `update users set display_name = case when $2::jsonb ? 'display_name' then $2 ->> 'display_name' else display_name end,
                            locale = case when $2 ? 'locale' then $2 ->> 'locale' else locale end,
                            email = case when $2 ? 'email' then $2 ->> 'email' else email end, ${bumpVersion}
            where user_id = $1`,
    values: [userId, JSON.stringify(change)],
  });
}

export interface Suspension {
  readonly reason: string;
  /** RFC 3339, UTC. */
  readonly until: string | null;
}

/** Returns false, and changes nothing, if the end time has passed by the database's clock. */
export async function suspend(tx: Tx, userId: string, { reason, until }: Suspension): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "suspend",
    text: `update users set status = 'SUSPENDED', suspended_reason = $2, suspended_until = $3::timestamptz, ${bumpVersion}
            where user_id = $1 and ($3::timestamptz is null or $3 > clock_timestamp())`,
    values: [userId, reason, until],
  });
  return rowCount === 1;
}

export async function reinstate(tx: Tx, userIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "reinstate",
    text: `update users set status = 'ACTIVE', suspended_reason = null, suspended_until = null, ${bumpVersion}
            where user_id = any($1)`,
    values: [userIds],
  });
}

export interface EndedSuspension {
  readonly user_id: string;
  readonly status: "SUSPENDED";
  readonly suspended_until: string;
  readonly suspended_reason: string;
}

/**
 * Locks users whose suspension has reached its end, up to `limit`. Rows that another transaction has locked are skipped: a
 * suspension that is being prolonged continues, and one that is still due is found by the next run.
 */
export async function lockEndedSuspensions(tx: Tx, limit: number): Promise<EndedSuspension[]> {
  const { rows } = await tx.query<EndedSuspension>({
    name: "lock ended suspensions",
    text: `select user_id, status, ${rfc3339Sql("suspended_until")} as suspended_until, suspended_reason
             from users where status = 'SUSPENDED' and suspended_until <= now()
            order by suspended_until limit $1 for update skip locked`,
    values: [limit],
  });
  return rows;
}

export async function insertRole(tx: Tx, userId: string, role: StaffRole): Promise<void> {
  await tx.query({
    name: "insert role",
    text: `with insert_role as (insert into account_roles (user_id, role) values ($1, $2))
           update users set ${bumpVersion} where user_id = $1`,
    values: [userId, role],
  });
}

export async function deleteRole(tx: Tx, userId: string, role: StaffRole): Promise<void> {
  await tx.query({
    name: "delete role",
    text: `with delete_role as (delete from account_roles where user_id = $1 and role = $2)
           update users set ${bumpVersion} where user_id = $1`,
    values: [userId, role],
  });
}

/** Deletes all personal data, in the audit too. The id, the version, and who changed what and when remain. */
export async function eraseUser(tx: Tx, userId: string): Promise<void> {
  await tx.query({
    name: "erase user",
    text: `with delete_identities as (delete from identities where user_id = $1),
           delete_roles as (delete from account_roles where user_id = $1),
           erase_audit as (
             update audit_logs set before = before - $2::text[], after = after - $2::text[]
              where user_id = $1 and (before ?| $2 or after ?| $2)
           )
           update users set status = 'DELETED', suspended_reason = null, suspended_until = null,
                            display_name = null, locale = null, email = null, ${bumpVersion}
            where user_id = $1`,
    values: [userId, personalFields],
  });
}

export const personalFields: readonly string[] = ["display_name", "locale", "email"];
