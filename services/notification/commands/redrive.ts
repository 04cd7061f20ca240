/**
 * Has something tried again that was given up: a notification sent under the same id, or an event taken by the inbox.
 * Asked twice, it happens once: the second time there is nothing dead to redrive, and the answer says so.
 */
import type { RedriveRequest } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import type { DeadTable } from "@todoke/kernel/dead";
import { deadLetterNotFound } from "../problems.ts";

export interface RedriveOptions {
  readonly db: Db;
  readonly dead: DeadTable;
  /** Called once it is committed. */
  readonly wake: () => void;
}

interface Redriven {
  /** False: somebody had done so before. */
  readonly redriven: boolean;
}

export type Redrive = (id: string, request: RedriveRequest) => Promise<Redriven>;

export function redrive({ db, dead, wake }: RedriveOptions): Redrive {
  return async (id, request) => {
    // Looked up first: what is not ours (an event of another consumer) is not to be touched.
    if (!(await dead.show(db, id))) throw deadLetterNotFound(`nothing was ever given up under ${id} in ${dead.name}`);
    const redriven = (await dead.redrive(db, [id], request)).length > 0;
    if (redriven) wake();
    return { redriven };
  };
}
