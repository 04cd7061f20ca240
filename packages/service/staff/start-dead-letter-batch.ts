/** Starts a batch that redrives or discards all dead letters that match a filter. A worker runs it (batch-worker.ts). */
import { randomUUIDv7 } from "node:crypto";
import { problems, recordStaffAct, type StaffActor } from "@todoke/http";
import { afterCommit, type Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { insertBatch } from "./batch-store.ts";
import { toFilter } from "./filter.ts";
import type { Filter } from "./views.ts";

export interface StartBatchDeps {
  readonly service: string;
  readonly db: Db;
  readonly wakeBatches: () => void;
}

export interface StartBatchRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly act: "redrive" | "discard";
  readonly table: DeadLetters;
  readonly filter: Filter;
  /** Allows an empty filter. */
  readonly all: boolean;
  readonly through: string;
  readonly reason: string;
}

/** A larger exact count is not worth its cost. */
export const countMax = 10_000;

export const startDeadLetterBatch =
  ({ service, db, wakeBatches }: StartBatchDeps) =>
  ({ key, actor, act, table, filter, all, through, reason }: StartBatchRequest): Promise<CommandResponse> => {
    if (!all && Object.keys(filter).length === 0)
      throw problems.invalidField("body.filter", "is empty: send all = true to change every dead letter of the table");
    return once(db, key, async (tx) => {
      const { count } = await table.preview(tx, toFilter(filter), countMax + 1);
      const row = await insertBatch(tx, {
        batchId: randomUUIDv7(),
        act,
        table: table.name,
        filter,
        through,
        total: Math.min(count, countMax),
        totalCapped: count > countMax,
        by: actor.name,
        reason,
      });
      const details = { batch_id: row.batch_id, act, filter, through, count };
      await recordStaffAct(tx, { actor, act: "startDeadLetterBatch", target: `${table.name}/*`, reason, details });
      afterCommit(tx, wakeBatches);
      return { status: 201, body: { service, ...row } };
    });
  };
