/**
 * Grants and revokes share one batcher: state, event, audit row and response of all its requests commit in one statement.
 *
 * A repeated key gets the stored response. Two requests for one entitlement, or with one key, never share a batch and keep
 * their order.
 */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, keyConflict, toKeyColumns } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { expiryInThePast } from "../problems.ts";
import { type ChangeResult, type ChangeRow, changeEntitlements } from "../store/change-entitlements.ts";

/** A grant or a revoke as its caller sends it. */
export interface ChangeRequest {
  readonly key: IdempotencyKey;
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly reason: string;
  readonly purchase_id: string;
}

export type Change = Pick<ChangeRow, "status" | "event_type" | "expires_at">;

export type SubmitChange = (request: ChangeRequest, change: Change) => Promise<CommandResponse>;

// One batch runs while another waits for the disk: a sixth more throughput than with one.
const concurrency = 3;

export function createChangeBatcher(db: Db, onCommitted: () => void): SubmitChange {
  const submit = createBatcher<ChangeRow, CommandResponse>({
    concurrency,
    conflictKeys: (row) => [`key ${row.scope}\n${row.idem_key}`, `row ${row.user_id}\n${row.stock_keeping_unit}`],
    async run(rows) {
      const results = await changeEntitlements(db, rows);
      if (results.some(({ result }) => result === "first")) onCommitted();
      return results.map(toResponse);
    },
  });
  return (request, change) => submit(toRow(request, change));
}

export function toResponse(changed: ChangeResult): CommandResponse | Error {
  if (changed.result === "already_expired")
    return expiryInThePast("expires_at is in the past; the product was not granted");
  count("todoke.idempotency.requests", { result: changed.result });
  return changed.result === "conflict" ? keyConflict() : changed;
}

export function toRow(
  { key, user_id, stock_keeping_unit, reason, purchase_id }: ChangeRequest,
  change: Change,
): ChangeRow {
  return {
    ...toKeyColumns(key),
    caller: callerIn(key),
    user_id,
    stock_keeping_unit,
    source: reason,
    source_id: purchase_id,
    event_id: randomUUIDv7(),
    headers: traceHeaders(),
    ...change,
  };
}

/** A scope is the authenticated caller, whose name has no space, and then the route. */
const callerIn = ({ scope }: IdempotencyKey): string => scope.split(" ", 1)[0] ?? scope;
