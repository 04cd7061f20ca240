/** Marks the orders of a batch that would exceed a limit of their instrument, inside the transaction that accepts the batch. */
import type { Tx } from "@todoke/kernel/db";
import { addOrder, hasExposureLimit, toExposure } from "../instruments/check-exposure.ts";
import type { Instruments } from "../instruments/index.ts";
import type { AcceptRow } from "../store/accept-orders.ts";
import { lockExposure, selectExposure, selectUsedKeys } from "../store/positions.ts";

export const isLimited = (instruments: Instruments, row: AcceptRow): boolean =>
  hasExposureLimit(instruments.byName.get(row.instrument));

/**
 * The exposure is read under a lock, and each order counts for those after it. An order that is rejected for another reason counts
 * too: in the same batch a later one may be rejected that would just have fitted.
 */
export async function checkLimits(
  tx: Tx,
  rows: readonly AcceptRow[],
  { adapter, instruments }: { readonly adapter: string; readonly instruments: Instruments },
): Promise<readonly AcceptRow[]> {
  const limited = rows.filter((row) => isLimited(instruments, row));
  const scope = { adapter, instruments: [...new Set(limited.map((row) => row.instrument))] };
  await lockExposure(tx, scope);
  const found = await selectExposure(tx, scope);
  const keyOf = (caller: string, idempotencyKey: string) => `${caller}\n${idempotencyKey}`;
  const keys = limited.map((row) => ({ caller: row.caller, idempotencyKey: row.idempotency_key }));
  const used = new Set((await selectUsedKeys(tx, keys)).map((key) => keyOf(key.caller, key.idempotencyKey)));
  const exposures = new Map(scope.instruments.map((name) => [name, toExposure(found.get(name))]));
  return rows.map((row) => {
    const [instrument, exposure] = [instruments.byName.get(row.instrument), exposures.get(row.instrument)];
    // An order that was accepted before is replayed, and is part of the exposure already.
    if (!instrument || !exposure || used.has(keyOf(row.caller, row.idempotency_key))) return row;
    const after = addOrder(exposure, row, instrument);
    if (typeof after === "string") return { ...row, over_limit: after };
    exposures.set(row.instrument, after);
    return row;
  });
}
