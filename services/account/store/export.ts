/** All stored data of one user except the audit, in one statement and therefore from one snapshot. */
import type { Role } from "@todoke/http";
import { omitNulls, type Queryable, rfc3339Sql } from "@todoke/kernel/db";
import type { Claims, IdentityName } from "./identities.ts";
import { type UserView, userColumns } from "./users.ts";

export interface ExportedUser {
  readonly user: UserView;
  readonly identities: (IdentityName & Claims & { readonly created_at: string; readonly updated_at: string })[];
  readonly roles: { readonly role: Role; readonly granted_at: string }[];
}

export async function selectExport(db: Queryable, userId: string): Promise<ExportedUser | undefined> {
  const { rows } = await db.query({
    name: "select export",
    text: `select ${userColumns},
                  (select jsonb_agg(jsonb_build_object('provider', i.provider, 'subject', i.subject, 'email', i.email,
                            'email_verified', i.email_verified, 'display_name', i.display_name, 'locale', i.locale,
                            'created_at', ${rfc3339Sql("i.created_at")}, 'updated_at', ${rfc3339Sql("i.updated_at")})
                          order by i.created_at, i.provider, i.subject)
                     from identities i where i.user_id = u.user_id) as identities,
                  (select jsonb_agg(jsonb_build_object('role', r.role, 'granted_at', ${rfc3339Sql("r.granted_at")})
                          order by r.role)
                     from account_roles r where r.user_id = u.user_id) as granted_roles
             from users u where u.user_id = $1`,
    values: [userId],
  });
  if (!rows[0]) return undefined;
  const { identities, granted_roles, ...user } = rows[0];
  return { user: omitNulls(user), identities: (identities ?? []).map(omitNulls), roles: granted_roles ?? [] };
}
