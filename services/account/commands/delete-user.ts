/** Deletes what is known of a person. The row stays as a tombstone; whoever logs in by the same identity is a new user. */
import { lastAdmin } from "../problems.ts";
import { entomb } from "../store/change-users.ts";
import { isLastAdmin } from "../store/users.ts";
import { type ActDeps, type ActRequest, actOnce } from "./act-once.ts";

export const deleteUser = (deps: ActDeps) => (request: ActRequest) =>
  actOnce(deps, request, {
    for: "oneself",
    async change(tx, { user_id, roles }) {
      if (user_id === request.actorId && roles.includes("ADMIN") && (await isLastAdmin(tx, user_id)))
        throw lastAdmin("make somebody else an admin first");
      await entomb(tx, user_id);
      return { action: "DELETE", event: "AccountDeleted" };
    },
  });
