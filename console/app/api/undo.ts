/** The act that undoes an act of the audit log, where there is one. What was sent cannot be unsent, so a redrive has none. */
import { path } from "./request.ts";
import type { AuditAct } from "./types.ts";
import type { Act } from "./use-act.ts";

type Details = Readonly<Record<string, string | undefined>>;

export function oppositeOf({ act, act_id, target, details }: AuditAct): ((reason: string) => Act) | undefined {
  const { user_id = target, role, stock_keeping_unit, direction, point_amount } = (details ?? {}) as Details;
  const user =
    (verb: string, more: object = {}) =>
    (reason: string) => ({
      path: `${path`/v1/admin/users/${target}`}:${verb}`,
      body: { reason, ...more },
    });
  const entitlement = (verb: string) => (reason: string) => ({
    path: path`/v1/admin/users/${user_id}/entitlement-${verb}`,
    body: { stock_keeping_unit, reason, undoes: act_id },
  });
  const undo: Readonly<Record<string, ((reason: string) => Act) | undefined>> = {
    suspendUser: user("reinstate"),
    reinstateUser: user("suspend"),
    grantRole: user("revoke-role", { role }),
    revokeRole: user("grant-role", { role }),
    grantEntitlementAsStaff: stock_keeping_unit ? entitlement("revokes") : undefined,
    revokeEntitlementAsStaff: stock_keeping_unit ? entitlement("grants") : undefined,
    adjustPoints:
      direction && point_amount !== undefined
        ? (reason) => ({
            path: path`/v1/admin/users/${user_id}/point-adjustments`,
            body: { direction: direction === "add" ? "spend" : "add", point_amount, reason, undoes: act_id },
          })
        : undefined,
  };
  return undo[act];
}
