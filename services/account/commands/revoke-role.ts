/** Revokes a staff role. The last active admin keeps the role ADMIN. */
import { lastAdmin } from "../problems.ts";
import { deleteRole } from "../store/change-users.ts";
import { isLastAdmin } from "../store/users.ts";
import type { RoleRequest } from "./grant-role.ts";
import { runUserAction, type UserActionDeps } from "./run-user-action.ts";

export const revokeRole = (deps: UserActionDeps) => (request: RoleRequest) =>
  runUserAction(deps, request, {
    async change(tx, { user_id, roles }) {
      const { role, actorId } = request;
      if (!roles.includes(role)) return undefined;
      // An actor who revokes the role of another user is an active admin and remains one.
      if (role === "ADMIN" && user_id === actorId && (await isLastAdmin(tx, user_id)))
        throw lastAdmin("make another user an admin first");
      await deleteRole(tx, user_id, role);
      return { action: "REVOKE_ROLE", event: "AccountRolesChanged" };
    },
  });
