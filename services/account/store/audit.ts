/** The audit: every change of a user writes a row; admins and the user can read it. */
import { omitNulls, type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import type { Topics } from "@todoke/service";

export type AuditAction = "CREATE" | "UPDATE" | "SUSPEND" | "REINSTATE" | "GRANT_ROLE" | "REVOKE_ROLE" | "DELETE";

export interface AuditRow {
  readonly user_id: string;
  /** The version of the user after the change. */
  readonly version: number;
  readonly actor: string;
  readonly action: AuditAction;
  readonly reason?: string;
  /** The fields that changed, with their values before and after. */
  readonly before: object;
  readonly after: object;
}

export interface AuditView extends AuditRow {
  readonly audit_id: number;
  readonly created_at: string;
}

export async function insertAudit(tx: Tx, rows: readonly AuditRow[]): Promise<void> {
  await tx.query({
    name: "insert audit",
    text: `insert into audit_logs (user_id, version, actor, action, reason, before, after)
           select user_id, version, actor, action, reason, before, after
             from jsonb_to_recordset($1::jsonb) as a(
                    user_id text, version bigint, actor text, action text, reason text, before jsonb, after jsonb)`,
    values: [JSON.stringify(rows)],
  });
}

export interface AuditPage {
  readonly user_id?: string | undefined;
  readonly actor?: string | undefined;
  /** Leaves out creations and updates, which need no reason. */
  readonly actsOnly?: boolean | undefined;
  /** The audit_id of the last row of the previous page. */
  readonly before?: string | undefined;
  readonly limit: number;
}

const maxAuditId = "9223372036854775807";

/** Newest first. */
export async function selectAudit(db: Queryable, page: AuditPage): Promise<AuditView[]> {
  const values: unknown[] = [page.before ?? maxAuditId, page.limit];
  const filters = (["user_id", "actor"] as const).flatMap((column) =>
    page[column] === undefined ? [] : [`a.${column} = $${values.push(page[column])}`],
  );
  if (page.actsOnly) filters.push("a.action not in ('CREATE', 'UPDATE')");
  const { rows } = await db.query({
    text: `select a.audit_id::float8 as audit_id, a.user_id, a.version::float8 as version, a.actor, a.action, a.reason,
                  a.before, a.after, ${rfc3339Sql("a.created_at")} as created_at
             from audit_logs a
            where ${["a.audit_id < $1", ...filters].join(" and ")} order by a.audit_id desc limit $2`,
    values,
  });
  return rows.map((row) => omitNulls(row));
}

/** Changes with a new act, for the audit log of the console. */
export async function readNewestActs(db: Queryable): Promise<Topics> {
  const { rows } = await db.query<{ acts: string | null }>({
    name: "newest acts",
    text: `select json_agg(audit_id)::text as acts
             from (select audit_id from audit_logs where action not in ('CREATE', 'UPDATE') order by audit_id desc limit ${newestMax}) a`,
  });
  return { "audit-log": rows[0]?.acts ?? "" };
}

// Transactions may commit in another order than they took their ids.
const newestMax = 20;
