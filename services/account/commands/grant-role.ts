/** Makes a user an admin. The role USER cannot be granted: every account has it. */
import { insertAdminRole } from "../store/change-users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export const grantRole = (deps: UserActionDeps) => (request: UserActionRequest) =>
  runUserAction(deps, request, {
    async change(tx, { user_id, roles }) {
      if (roles.includes("ADMIN")) return undefined;
      await insertAdminRole(tx, user_id);
      return { action: "GRANT_ROLE", event: "AccountRolesChanged" };
    },
  });
