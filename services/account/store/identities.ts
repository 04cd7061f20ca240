/** Identities: the user of a provider's subject, and the claims that the provider last sent. */
import { type Db, omitNulls, type Queryable, runStatement, type Tx } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { accountCreated } from "../events/account-events.ts";
import { type UserView, userColumns } from "./users.ts";

export interface IdentityName {
  readonly provider: string;
  readonly subject: string;
}

/** Claims of the provider, which can change at every login. */
export interface Claims {
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly display_name?: string;
  readonly locale?: string;
}

export interface Identity {
  readonly claims: Claims;
  readonly user: UserView;
}

const claimColumns = `i.email, i.email_verified, i.display_name, i.locale`;

/** An index probe by provider and subject, and never by a claim, because claims can change. */
export async function selectIdentity(db: Queryable, name: IdentityName): Promise<Identity | undefined> {
  const { rows } = await db.query({
    name: "select identity",
    text: `select to_jsonb(c) as claims, u.*
             from identities i
            cross join lateral (select ${claimColumns}) c
            cross join lateral (select ${userColumns} from users u where u.user_id = i.user_id) u
            where i.provider = $1 and i.subject = $2`,
    values: [name.provider, name.subject],
  });
  if (!rows[0]) return undefined;
  const { claims, ...user } = rows[0];
  return { claims: omitNulls(claims), user: omitNulls(user) };
}

export interface NewUser extends IdentityName {
  readonly userId: string;
  readonly claims: Claims;
  /** The claims that become the new user's profile. */
  readonly profile: Claims;
  readonly actor: string;
  readonly eventId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The identity is inserted first. Its primary key lets one of many concurrent logins create the user, the role, the audit
 * row and the event; the others insert nothing. Foreign keys are checked at the end of the statement.
 */
const insertUserSql = `
with insert_identity as (
  insert into identities (provider, subject, user_id, email, email_verified, display_name, locale)
  select $1, $2, $3, c.email, c.email_verified, c.display_name, c.locale
    from jsonb_to_record($4::jsonb) as c(email text, email_verified boolean, display_name text, locale text)
  on conflict (provider, subject) do nothing
  returning user_id
),
new_user as (
  insert into users (user_id, email, display_name, locale)
  select n.user_id, p.email, p.display_name, p.locale
    from insert_identity n, jsonb_to_record($5::jsonb) as p(email text, display_name text, locale text)
  returning user_id, version, created_at
),
insert_role as (insert into account_roles (user_id, role) select user_id, 'USER' from new_user),
insert_audit as (
  insert into audit_logs (user_id, version, actor, action, before, after)
  select user_id, version, $6, 'CREATE', '{}', '{"status": "ACTIVE", "roles": ["USER"]}' from new_user
),
insert_events as (
  ${insertEventsSql({ ...accountCreated, from: "new_user", eventId: "$7::uuid", headers: "$8::jsonb" })}
)
select from new_user`;

/** Returns false if the identity already has a user. */
export async function insertUser(db: Db, user: NewUser): Promise<boolean> {
  const { provider, subject, userId, claims, profile, actor, eventId, headers } = user;
  const { rowCount } = await runStatement(db, {
    name: "insert user",
    text: insertUserSql,
    values: [
      provider,
      subject,
      userId,
      JSON.stringify(claims),
      JSON.stringify(profile),
      actor,
      eventId,
      JSON.stringify(headers),
    ],
  });
  return rowCount === 1;
}

/** A claim that is missing stays as it is. */
export async function updateClaims(tx: Tx, { provider, subject }: IdentityName, claims: Claims): Promise<void> {
  await tx.query({
    name: "update claims",
    text: `update identities i
              set email = coalesce(c.email, i.email), email_verified = coalesce(c.email_verified, i.email_verified),
                  display_name = coalesce(c.display_name, i.display_name), locale = coalesce(c.locale, i.locale),
                  updated_at = now()
             from jsonb_to_record($3::jsonb) as c(email text, email_verified boolean, display_name text, locale text)
            where i.provider = $1 and i.subject = $2`,
    values: [provider, subject, JSON.stringify(claims)],
  });
}
