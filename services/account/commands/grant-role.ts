/** Makes a user an admin. USER is no role to be granted: it comes with the account, and goes with it. */
import { giveAdmin } from "../store/change-users.ts";
import { type ActDeps, type ActRequest, actOnce } from "./act-once.ts";

export const grantRole = (deps: ActDeps) => (request: ActRequest) =>
  actOnce(deps, request, {
    async change(tx, { user_id, roles }) {
      if (roles.includes("ADMIN")) return undefined;
      await giveAdmin(tx, user_id);
      return { action: "GRANT_ROLE", event: "AccountRolesChanged" };
    },
  });
