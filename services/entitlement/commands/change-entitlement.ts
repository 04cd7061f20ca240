/**
 * Grants and revokes: state, event and answer commit together, for every request of a batch in one statement.
 *
 * What runs twice is answered from idempotency_keys; two commands for one entitlement, or with one key, never share a
 * batch and keep their order.
 */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Answer, type IdempotencyKey, idempotencyConflict } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { type ChangeResult, type ChangeRow, changeEntitlements } from "../store/change-entitlements.ts";

export interface EntitlementChange {
  readonly key: IdempotencyKey;
  readonly status: "ACTIVE" | "REVOKED";
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly reason: string;
  readonly purchase_id: string;
}

export type ChangeEntitlement = (change: EntitlementChange) => Promise<Answer>;

/** `onCommitted` hears of every batch that wrote events: the relay's wake-up. */
export function changeEntitlement(db: Db, onCommitted: () => void): ChangeEntitlement {
  const submit = gather<ChangeRow, Answer>({
    touches: (row) => [`key ${row.scope}\n${row.idem_key}`, `row ${row.user_id}\n${row.stock_keeping_unit}`],
    async run(rows) {
      const results = await changeEntitlements(db, rows);
      if (results.some((result) => !result.replayed)) onCommitted();
      for (const result of results) count("todoke.idempotency.requests", { result: kindOf(result) });
      return results.map(({ sameRequest, ...answer }) =>
        sameRequest
          ? answer
          : idempotencyConflict(
              "this Idempotency-Key was first sent with another body; use a new key for a new command",
            ),
      );
    },
  });
  return (change) => submit(changeRow(change));
}

const kindOf = ({ replayed, sameRequest }: ChangeResult) =>
  !sameRequest ? "conflict" : replayed ? "replayed" : "first";

const eventTypes = { ACTIVE: "EntitlementGranted", REVOKED: "EntitlementRevoked" };

function changeRow({ key, status, user_id, stock_keeping_unit, reason, purchase_id }: EntitlementChange): ChangeRow {
  return {
    scope: key.scope,
    idem_key: key.key,
    request_hash: key.requestHash.toString("hex"),
    user_id,
    stock_keeping_unit,
    status,
    source: reason,
    source_id: purchase_id,
    event_id: randomUUIDv7(),
    event_type: eventTypes[status],
    headers: traceHeaders(),
  };
}
