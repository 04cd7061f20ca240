/**
 * The writes on users that exist. Whoever calls one has locked the user; each raises the version by one, and leaves what
 * it does not name as it was: also a suspension that has run out and waits to be told.
 */
import type { Tx } from "@todoke/kernel/db";

/** Null clears; what is not given stays. */
export interface ProfileChange {
  readonly display_name?: string | null;
  readonly locale?: string | null;
  readonly email?: string;
}

const next = `version = version + 1, updated_at = now()`;

export async function updateProfile(tx: Tx, userId: string, change: ProfileChange): Promise<void> {
  await tx.query({
    name: "update profile",
    text: `update users set display_name = case when $2::jsonb ? 'display_name' then $2 ->> 'display_name' else display_name end,
                            locale = case when $2 ? 'locale' then $2 ->> 'locale' else locale end,
                            email = case when $2 ? 'email' then $2 ->> 'email' else email end, ${next}
            where user_id = $1`,
    values: [userId, JSON.stringify(change)],
  });
}

export interface Suspension {
  readonly reason: string;
  /** RFC 3339, UTC. */
  readonly until: string | null;
}

/** False when it would be over already, by the database's clock; then nothing was changed. */
export async function suspend(tx: Tx, userId: string, { reason, until }: Suspension): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "suspend",
    text: `update users set status = 'SUSPENDED', suspended_reason = $2, suspended_until = $3::timestamptz, ${next}
            where user_id = $1 and ($3::timestamptz is null or $3 > clock_timestamp())`,
    values: [userId, reason, until],
  });
  return rowCount === 1;
}

export async function reinstate(tx: Tx, userId: string): Promise<void> {
  await tx.query({
    name: "reinstate",
    text: `update users set status = 'ACTIVE', suspended_reason = null, suspended_until = null, ${next} where user_id = $1`,
    values: [userId],
  });
}

export async function giveAdmin(tx: Tx, userId: string): Promise<void> {
  await tx.query({
    name: "give admin",
    text: `with given as (insert into account_roles (user_id, role) values ($1, 'ADMIN'))
           update users set ${next} where user_id = $1`,
    values: [userId],
  });
}

export async function takeAdmin(tx: Tx, userId: string): Promise<void> {
  await tx.query({
    name: "take admin",
    text: `with taken as (delete from account_roles where user_id = $1 and role = 'ADMIN')
           update users set ${next} where user_id = $1`,
    values: [userId],
  });
}

/** What is left is the id, the version, and who did what when: no word about the person, in the audit either. */
export async function entomb(tx: Tx, userId: string): Promise<void> {
  await tx.query({
    name: "entomb",
    text: `with unnamed as (delete from identities where user_id = $1),
           dismissed as (delete from account_roles where user_id = $1),
           scrubbed as (
             update audit_logs set before = before - $2::text[], after = after - $2::text[]
              where user_id = $1 and (before ?| $2 or after ?| $2)
           )
           update users set status = 'DELETED', suspended_reason = null, suspended_until = null,
                            display_name = null, locale = null, email = null, ${next}
            where user_id = $1`,
    values: [userId, personalFields],
  });
}

export const personalFields: readonly string[] = ["display_name", "locale", "email"];
