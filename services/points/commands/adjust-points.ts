/**
 * Staff adds or spends points of a user. Ledger, event, response and the record of the act are one commit. It does not share a
 * batch with others, because the record belongs to one change.
 */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import { type Db, toStorableText, transaction } from "@todoke/kernel/db";
import type { CommandResponse, IdempotencyKey } from "@todoke/kernel/idempotency";
import { type PointsChange, toRequest, toResponse } from "./change-points.ts";
import { postChanges } from "./post-changes.ts";

export interface AdjustRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly direction: "add" | "spend";
  readonly userId: string;
  readonly amount: bigint;
  /** Of added points; null: never. */
  readonly expiresAt: string | null;
  readonly reason: string;
  /** The act that this one undoes. */
  readonly undoes?: string | undefined;
}

const act = "adjustPoints";
const reasonMax = 128;

export const adjustPoints =
  (db: Db, onCommitted: () => void) =>
  async (request: AdjustRequest): Promise<CommandResponse> => {
    const { key, actor, direction, userId, amount, reason, undoes } = request;
    const response = await transaction(db, async (tx) => {
      const [result] = await postChanges(tx, [toRequest(key, toChange(request))]);
      if (!result) throw new Error("a change has no result");
      const opposite = { direction: direction === "add" ? "spend" : "add", point_amount: String(amount) };
      if (result.result === "posted")
        await recordStaffAct(tx, {
          actor,
          act,
          target: userId,
          reason,
          details: { direction, point_amount: String(amount), transaction_id: result.applied.transaction.id },
          ...(undoes !== undefined && { undoes: { actId: undoes, acts: [act], details: opposite } }),
        });
      return toResponse(result);
    });
    if (response instanceof Error) throw response;
    if (!response.replayed) onCommitted();
    return response;
  };

function toChange({ actor, direction, userId, amount, expiresAt, reason }: AdjustRequest): PointsChange {
  const origin = { userId, amount, reason: toStorableText(reason, reasonMax), source: "staff", sourceId: actor.name };
  return direction === "add" ? { kind: "ADD", ...origin, expiresAt } : { kind: "SUB", ...origin };
}
