/** The audit of account as acts of staff. */
import type { Act } from "./merge-acts.ts";

/** A row of `GET /admin/audit`. */
export interface AuditRow {
  readonly audit_id: number;
  readonly user_id: string;
  readonly actor: string;
  readonly action: string;
  readonly reason?: string;
  readonly before: Readonly<Record<string, unknown>>;
  readonly after: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}

const acts: Readonly<Record<string, string>> = {
  SUSPEND: "suspendUser",
  REINSTATE: "reinstateUser",
  GRANT_ROLE: "grantRole",
  REVOKE_ROLE: "revokeRole",
  DELETE: "deleteUser",
};

export function accountAct(row: AuditRow): Act {
  const { audit_id, user_id, actor, action, reason = null, before, after, created_at } = row;
  const role = changedRole(before.roles, after.roles);
  return {
    service: "account",
    act_id: `audit-${audit_id}`,
    at: created_at,
    actor,
    role: null,
    act: acts[action] ?? action,
    target: user_id,
    reason,
    details: { before, after, ...(role !== undefined && { role }) },
    undoes: null,
    undone_by: null,
  };
}

/** The role that one list has and the other has not. */
function changedRole(before: unknown, after: unknown): unknown {
  if (!Array.isArray(before) || !Array.isArray(after)) return undefined;
  return [...before, ...after].find((role) => before.includes(role) !== after.includes(role));
}
