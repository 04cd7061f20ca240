/** Rules between users and their audit, which is never removed. */
import { type AuditSpec, eventExists } from "@todoke/kernel/audit";
import { type Queryable, rfc3339Sql } from "@todoke/kernel/db";

export const accountAudit: AuditSpec = {
  checked: { users: "users", changes: "audit_logs" },
  rules: {
    "every version of a user has one change": `
    select u.user_id as about, format('version %s, %s changes up to %s', u.version, coalesce(a.changes, 0), a.last) as detail
      from users u
      left join (select user_id, count(*) as changes, max(version) as last from audit_logs group by user_id) a using (user_id)
     where u.version is distinct from a.changes or u.version is distinct from a.last`,
    "every user is in the state that the last change of it set": `
    select u.user_id as about, format('%s, last change: %s', u.status, coalesce(a.action, 'none')) as detail
      from users u
      left join lateral (
        select l.action from audit_logs l
         where l.user_id = u.user_id and l.action in ('CREATE', 'SUSPEND', 'REINSTATE', 'DELETE')
         order by l.audit_id desc limit 1) a on true
     where u.status is distinct from case a.action when 'SUSPEND' then 'SUSPENDED' when 'DELETE' then 'DELETED' else 'ACTIVE' end`,
    "every suspension, reinstatement, role and deletion has its event": `
    select a.user_id || '@' || a.version as about, format('%s by %s', a.action, a.actor) as detail
      from audit_logs a
     where a.created_at > (select since from kept) and a.action <> 'UPDATE'
       and not ${eventExists("o.aggregate_key = a.user_id and o.version = a.version")}`,
  },
};

export interface InactiveUser {
  readonly user_id: string;
  readonly status: "SUSPENDED" | "DELETED";
  /** RFC 3339. */
  readonly since: string;
}

/** Users who have been suspended or deleted for `graceMs`, in the order of their ids. */
export async function selectInactive(
  db: Queryable,
  { after, graceMs, limit }: { readonly after: string; readonly graceMs: number; readonly limit: number },
): Promise<readonly InactiveUser[]> {
  const { rows } = await db.query<InactiveUser>(
    `select u.user_id, u.status, ${rfc3339Sql("a.created_at")} as since
       from users u
      cross join lateral (
        select l.created_at from audit_logs l
         where l.user_id = u.user_id and l.action in ('SUSPEND', 'DELETE')
         order by l.audit_id desc limit 1) a
      where u.user_id > $1 and u.status <> 'ACTIVE' and (u.suspended_until is null or u.suspended_until > now())
        and a.created_at < now() - $2::float8 * interval '1 millisecond'
      order by u.user_id limit $3`,
    [after, graceMs, limit],
  );
  return rows;
}
