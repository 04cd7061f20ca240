/** Reinstates users whose suspension has reached its end: state, audit rows and events in one transaction. */
import { type Db, transaction } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { accountEvent } from "../events/account-events.ts";
import { insertAudit } from "../store/audit.ts";
import { type EndedSuspension, lockEndedSuspensions, reinstate } from "../store/change-users.ts";
import { selectEach, type UserView } from "../store/users.ts";

/** The audit's `actor`; users and services have other prefixes. */
const actor = "todoke:expiry";
const reason = "the time of the suspension was up";

/** Ends up to `limit` suspensions that are due by the database's clock, and returns how many. */
export function endSuspensions(db: Db, outbox: Outbox, limit: number): Promise<number> {
  return transaction(db, async (tx) => {
    const suspensions = await lockEndedSuspensions(tx, limit);
    if (suspensions.length === 0) return 0;
    const userIds = suspensions.map(({ user_id }) => user_id);
    await reinstate(tx, userIds);
    const users = (await selectEach(tx, userIds)) as UserView[]; // All exist: their rows are locked.
    const auditRows = users.map(({ user_id, version, status }, index) => {
      const { user_id: _, ...before } = suspensions[index] as EndedSuspension;
      return { user_id, version, actor, action: "REINSTATE" as const, reason, before, after: { status } };
    });
    await insertAudit(tx, auditRows);
    await outbox.append(tx, ...users.map((user) => accountEvent("AccountReinstated", user, { reason })));
    return users.length;
  });
}
