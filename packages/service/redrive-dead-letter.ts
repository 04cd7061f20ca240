/**
 * Redrives a dead letter for an operator. Repeating the request has no effect: the second time nothing is dead, and the
 * response says so.
 */
import type { RedriveRequest } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { deadLetterNotFound } from "./problems.ts";

export interface RedriveOptions {
  readonly db: Db;
  readonly deadLetters: DeadLetters;
  /** Called after the commit; wakes the worker. */
  readonly onRedriven: () => void;
}

interface Redriven {
  /** False if it was redriven before. */
  readonly redriven: boolean;
}

export type RedriveDeadLetter = (id: string, request: RedriveRequest) => Promise<Redriven>;

export function redriveDeadLetter({ db, deadLetters, onRedriven }: RedriveOptions): RedriveDeadLetter {
  return async (id, request) => {
    const redriven = (await deadLetters.redrive(db, [id], request)).length > 0;
    if (redriven) onRedriven();
    else if (!(await deadLetters.show(db, id)))
      throw deadLetterNotFound(`${deadLetters.name} has never had a dead letter with the id ${id}`);
    return { redriven };
  };
}
