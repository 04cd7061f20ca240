/** Keeps a user from doing anything, until a time or until somebody reinstates them. Again, it replaces reason and end. */
import { ownSuspension, suspensionEndInThePast } from "../problems.ts";
import { suspend } from "../store/change-users.ts";
import { type ActDeps, type ActRequest, actOnce } from "./act-once.ts";

export interface SuspendUser extends ActRequest {
  /** RFC 3339; when it ends by itself. */
  readonly until?: string;
}

export const suspendUser = (deps: ActDeps) => (request: SuspendUser) => {
  const { userId, actorId, reason, until } = request;
  return actOnce(deps, request, {
    async change(tx) {
      if (userId === actorId) throw ownSuspension("ask another admin");
      // In UTC: offsets that RFC 3339 allows, and PostgreSQL does not, are gone by then.
      const end = until === undefined ? null : new Date(until).toISOString();
      if (!(await suspend(tx, userId, { reason, until: end })))
        throw suspensionEndInThePast("until has passed already; nobody was suspended");
      return {
        action: "SUSPEND",
        event: "AccountSuspended",
        said: () => ({ reason }),
      };
    },
  });
};
