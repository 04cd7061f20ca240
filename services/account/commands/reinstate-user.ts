/** Ends a suspension before its time. */
import { reinstate } from "../store/change-users.ts";
import { type ActDeps, type ActRequest, actOnce } from "./act-once.ts";

export const reinstateUser = (deps: ActDeps) => (request: ActRequest) =>
  actOnce(deps, request, {
    async change(tx, { user_id, status }) {
      if (status !== "SUSPENDED") return undefined;
      await reinstate(tx, user_id);
      return { action: "REINSTATE", event: "AccountReinstated", said: () => ({ reason: request.reason }) };
    },
  });
