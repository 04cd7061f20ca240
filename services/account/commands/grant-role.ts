/** Grants a staff role. The role USER cannot be granted: every account has it. */
import type { StaffRole } from "@todoke/http";
import { insertRole } from "../store/change-users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export interface RoleRequest extends UserActionRequest {
  readonly role: StaffRole;
}

export const grantRole = (deps: UserActionDeps) => (request: RoleRequest) =>
  runUserAction(deps, request, {
    async change(tx, { user_id, roles }) {
      if (roles.includes(request.role)) return undefined;
      await insertRole(tx, user_id, request.role);
      return { action: "GRANT_ROLE", event: "AccountRolesChanged" };
    },
  });
