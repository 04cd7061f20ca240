/** Identities: whom a provider names, and what it last said of them. */
import { type Db, type Queryable, statement, type Tx, utcText } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { accountEventSql } from "./events.ts";
import { shown, type UserView, userColumns } from "./users.ts";

export interface IdentityName {
  readonly provider: string;
  readonly subject: string;
}

/** What a provider says and may say otherwise tomorrow. */
export interface Claims {
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly display_name?: string;
  readonly locale?: string;
}

export interface KnownIdentity {
  readonly claims: Claims;
  readonly user: UserView;
}

const claimColumns = `i.email, i.email_verified, i.display_name, i.locale`;

/** One index probe each: by provider and subject, never by anything that can change. */
export async function selectIdentity(db: Queryable, name: IdentityName): Promise<KnownIdentity | undefined> {
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
  return { claims: shown(claims), user: shown(user) };
}

export interface NewUser extends IdentityName {
  readonly userId: string;
  readonly claims: Claims;
  /** What of the claims the user begins with. */
  readonly profile: Claims;
  readonly actor: string;
  readonly eventId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The identity is written first, and its key decides: of all who try at once, also elsewhere, one goes on to make the
 * user, the role, the audit row and the event, and the others make nothing. Foreign keys are looked at when the whole
 * statement has run.
 */
const insertText = `
with named as (
  insert into identities (provider, subject, user_id, email, email_verified, display_name, locale)
  select $1, $2, $3, c.email, c.email_verified, c.display_name, c.locale
    from jsonb_to_record($4::jsonb) as c(email text, email_verified boolean, display_name text, locale text)
  on conflict (provider, subject) do nothing
  returning user_id
),
made as (
  insert into users (user_id, email, display_name, locale)
  select n.user_id, p.email, p.display_name, p.locale
    from named n, jsonb_to_record($5::jsonb) as p(email text, display_name text, locale text)
  returning user_id, version, created_at
),
given as (insert into account_roles (user_id, role) select user_id, 'USER' from made),
audited as (
  insert into audit_logs (user_id, version, actor, action, before, after)
  select user_id, version, $6, 'CREATE', '{}', '{"status": "ACTIVE", "roles": ["USER"]}' from made
),
insert_events as (
  ${insertEventsSql({
    ...accountEventSql,
    from: "made",
    eventId: "$7::uuid",
    eventType: "'AccountCreated'",
    occurredAt: utcText("created_at"),
    headers: "$8::jsonb",
    fields: { user_id: "user_id", status: "'ACTIVE'", roles: "'USER'" },
  })}
)
select from made`;

/** False when the identity has a user already, or somebody has just made one. */
export async function insertUser(db: Db, user: NewUser): Promise<boolean> {
  const { provider, subject, userId, claims, profile, actor, eventId, headers } = user;
  const { rowCount } = await statement(db, {
    name: "insert user",
    text: insertText,
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

/** What is not among the claims stays as it was told before. */
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
