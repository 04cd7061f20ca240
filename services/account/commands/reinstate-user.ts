/** Ends a suspension. */
import { reinstate } from "../store/change-users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export const reinstateUser = (deps: UserActionDeps) => (request: UserActionRequest) =>
  runUserAction(deps, request, {
    allowed: "operators",
    async change(tx, { user_id, status }) {
      if (status !== "SUSPENDED") return undefined;
      await reinstate(tx, [user_id]);
      return { action: "REINSTATE", event: "AccountReinstated", eventFields: { reason: request.reason } };
    },
  });
