/** Erases a person's data. The row stays as a tombstone; a later login by the same identity creates a new user. */
import { lastAdmin } from "../problems.ts";
import { eraseUser } from "../store/change-users.ts";
import { isLastAdmin } from "../store/users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export const deleteUser = (deps: UserActionDeps) => (request: UserActionRequest) =>
  runUserAction(deps, request, {
    allowed: "self-and-admins",
    async change(tx, { user_id, roles }) {
      if (user_id === request.actorId && roles.includes("ADMIN") && (await isLastAdmin(tx, user_id)))
        throw lastAdmin("make another user an admin first");
      await eraseUser(tx, user_id);
      return { action: "DELETE", event: "AccountDeleted" };
    },
  });
