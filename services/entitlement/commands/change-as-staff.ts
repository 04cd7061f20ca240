/**
 * A grant or revoke by staff. State, event, audit row, response and the record of the act are one commit. It does not share a
 * batch with others, because the record belongs to one change.
 */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import { type Db, toStorableText, transaction } from "@todoke/kernel/db";
import type { CommandResponse, IdempotencyKey } from "@todoke/kernel/idempotency";
import { changeEntitlements } from "../store/change-entitlements.ts";
import { type Change, toResponse, toRow } from "./create-change-batcher.ts";

export interface StaffChangeDeps {
  readonly db: Db;
  /** Wakes the relay. */
  readonly onCommitted: () => void;
}

export interface StaffChangeRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly reason: string;
  /** The act that this one undoes. */
  readonly undoes?: string;
}

export type StaffChange = Change & { readonly act: string; readonly inverse: string };

export async function changeAsStaff(
  { db, onCommitted }: StaffChangeDeps,
  { key, actor, undoes, ...request }: StaffChangeRequest,
  { act, inverse, ...change }: StaffChange,
): Promise<CommandResponse> {
  const { user_id, stock_keeping_unit, reason } = request;
  // The history shows the reason where it shows the purchase of a sale.
  const row = toRow({ ...request, key, reason: "staff", purchase_id: toStorableText(reason, sourceIdMax) }, change);
  const response = await transaction(db, async (tx) => {
    const [result] = await changeEntitlements(tx, [row]);
    if (!result) throw new Error("a change has no result");
    if (result.result === "first")
      await recordStaffAct(tx, {
        actor,
        act,
        target: user_id,
        reason,
        details: { stock_keeping_unit, expires_at: change.expires_at },
        ...(undoes !== undefined && { undoes: { actId: undoes, acts: [inverse], details: { stock_keeping_unit } } }),
      });
    return toResponse(result);
  });
  if (response instanceof Error) throw response;
  if (!response.replayed) onCommitted();
  return response;
}

const sourceIdMax = 128;
