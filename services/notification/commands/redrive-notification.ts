/**
 * Gives a FAILED notification all its attempts again, under the same id. Asked twice, it happens once: the second time
 * there is nothing FAILED to redrive, and the answer says what has become of it.
 */
import { afterCommit, type Db, transaction } from "@todoke/kernel/db";
import { deadLetterNotFound } from "../problems.ts";
import { markRedriven, selectDeadNotification } from "../store/dead-notifications.ts";
import { notifications } from "../store/notifications.ts";

export interface Redriven {
  /** False: somebody had done so before. */
  readonly redriven: boolean;
}

/** `wake` is called once it is committed. */
export function redriveNotification(db: Db, wake: () => void) {
  return async (notificationId: string): Promise<Redriven> => {
    const redriven = await transaction(db, async (tx) => {
      const ids = await notifications.redrive(tx, [notificationId]);
      if (ids.length === 0) return false;
      await markRedriven(tx, ids);
      afterCommit(tx, wake);
      return true;
    });
    if (!redriven && !(await selectDeadNotification(db, notificationId))) {
      throw deadLetterNotFound(`no notification ${notificationId} has ever been given up`);
    }
    return { redriven };
  };
}
