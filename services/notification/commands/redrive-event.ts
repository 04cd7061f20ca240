/** Has the inbox try an event again that it gave up. Asked twice, it happens once. */
import type { Db } from "@todoke/kernel/db";
import { redriveDead } from "@todoke/kernel/inbox";
import { deadLetterNotFound } from "../problems.ts";
import { selectDeadEvent } from "../store/dead-events.ts";
import type { Redriven } from "./redrive-notification.ts";

export interface RedriveEventOptions {
  readonly db: Db;
  readonly consumer: string;
  /** Called once it is committed. */
  readonly wake: () => void;
}

export function redriveEvent({ db, consumer, wake }: RedriveEventOptions) {
  return async (dlqId: string): Promise<Redriven> => {
    // Looked up first: a row of another consumer is not ours to touch.
    if (!(await selectDeadEvent(db, { consumer, dlqId }))) {
      throw deadLetterNotFound(`${consumer} has given up no event under the number ${dlqId}`);
    }
    const redriven = (await redriveDead(db, [BigInt(dlqId)])).length > 0;
    if (redriven) wake();
    return { redriven };
  };
}
