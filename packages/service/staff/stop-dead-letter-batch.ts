/** Stops a batch of dead letters after its current step. */
import { recordStaffAct, type StaffActor } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { batchNotFound } from "../problems.ts";
import { selectBatch, stopBatch } from "./batch-store.ts";

export interface StopBatchRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly batchId: string;
  readonly reason: string;
}

/** A batch that has ended stays as it is. */
export const stopDeadLetterBatch =
  ({ service, db }: { readonly service: string; readonly db: Db }) =>
  ({ key, actor, batchId, reason }: StopBatchRequest): Promise<CommandResponse> =>
    once(db, key, async (tx) => {
      const stopped = await stopBatch(tx, batchId);
      const details = { batch_id: batchId };
      if (stopped)
        await recordStaffAct(tx, { actor, act: "stopDeadLetterBatch", target: `${stopped.table}/*`, reason, details });
      const row = stopped ?? (await selectBatch(tx, batchId));
      if (!row) throw batchNotFound(`${service} has no batch ${batchId}`);
      return { status: 200, body: { service, ...row } };
    });
