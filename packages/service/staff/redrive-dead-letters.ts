/** Redrives or discards dead letters for staff: the change, its record and the stored response are one commit. */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import { afterCommit, type Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";

export interface ChangeDeadLettersDeps {
  readonly db: Db;
  /** Wakes the workers of the table. */
  readonly onChanged: (table: string) => void;
}

export interface ChangeDeadLettersRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly table: DeadLetters;
  readonly ids: readonly string[];
  readonly reason: string;
}

type Change = "redrive" | "discard";

/** The record lists the ids that were changed. If none was changed, there is no record. */
export const changeDeadLetters =
  (change: Change, act: string) =>
  ({ db, onChanged }: ChangeDeadLettersDeps) =>
  ({ key, actor, table, ids, reason }: ChangeDeadLettersRequest): Promise<CommandResponse> =>
    once(db, key, async (tx) => {
      const validIds = ids.filter((id) => table.isId(id));
      const applied = await table[change](tx, validIds, { by: actor.name, reason });
      const [first = "", ...more] = applied;
      const target = `${table.name}/${more.length === 0 ? first : "*"}`;
      if (applied.length > 0) await recordStaffAct(tx, { actor, act, target, reason, details: { ids: applied } });
      afterCommit(tx, () => onChanged(table.name));
      const done = new Set(applied);
      return { status: 200, body: { applied, unchanged: ids.filter((id) => !done.has(id)) } };
    });

export const redriveDeadLetters = changeDeadLetters("redrive", "redriveDeadLetters");
