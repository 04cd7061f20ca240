/** Takes the role ADMIN from a user; not from the last one who could give it back. */
import { lastAdmin } from "../problems.ts";
import { takeAdmin } from "../store/change-users.ts";
import { isLastAdmin } from "../store/users.ts";
import { type ActDeps, type ActRequest, actOnce } from "./act-once.ts";

export const revokeRole = (deps: ActDeps) => (request: ActRequest) =>
  actOnce(deps, request, {
    async change(tx, { user_id, roles }) {
      if (!roles.includes("ADMIN")) return undefined;
      // Whoever takes it from another is an active admin, and stays one.
      if (user_id === request.actorId && (await isLastAdmin(tx, user_id)))
        throw lastAdmin("make somebody else an admin first");
      await takeAdmin(tx, user_id);
      return { action: "REVOKE_ROLE", event: "AccountRolesChanged" };
    },
  });
