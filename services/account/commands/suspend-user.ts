/** Suspends a user until a time, or until an admin reinstates them. Suspending again replaces the reason and the end. */
import { ownSuspension, suspensionEndInThePast } from "../problems.ts";
import { suspend } from "../store/change-users.ts";
import { runUserAction, type UserActionDeps, type UserActionRequest } from "./run-user-action.ts";

export interface SuspendUserRequest extends UserActionRequest {
  /** RFC 3339. */
  readonly until?: string;
}

export const suspendUser = (deps: UserActionDeps) => (request: SuspendUserRequest) => {
  const { userId, actorId, reason, until } = request;
  return runUserAction(deps, request, {
    allowed: "operators",
    async change(tx) {
      if (userId === actorId) throw ownSuspension("ask another admin");
      // In UTC, because RFC 3339 allows offsets that PostgreSQL does not.
      const end = until === undefined ? null : new Date(until).toISOString();
      if (!(await suspend(tx, userId, { reason, until: end })))
        throw suspensionEndInThePast("until is in the past; the user was not suspended");
      return { action: "SUSPEND", event: "AccountSuspended", eventFields: { reason } };
    },
  });
};
