/** Revokes the role ADMIN, unless the user is the last active admin. */
import { lastAdmin } from "../problems.ts";
import { deleteAdminRole } from "../store/change-users.ts";
import { isLastAdmin } from "../store/users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export const revokeRole = (deps: UserActionDeps) => (request: UserActionRequest) =>
  runUserAction(deps, request, {
    async change(tx, { user_id, roles }) {
      if (!roles.includes("ADMIN")) return undefined;
      // An actor who revokes the role of another user is an active admin and remains one.
      if (user_id === request.actorId && (await isLastAdmin(tx, user_id)))
        throw lastAdmin("make another user an admin first");
      await deleteAdminRole(tx, user_id);
      return { action: "REVOKE_ROLE", event: "AccountRolesChanged" };
    },
  });
