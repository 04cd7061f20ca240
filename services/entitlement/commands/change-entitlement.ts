/**
 * Grants and revokes: state, event, audit and answer commit together, for every request of a batch in one statement.
 *
 * A repeated key is answered with the stored response; two commands for one entitlement, or with one key, never share a
 * batch and keep their order.
 */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Answer, type IdempotencyKey, idempotencyConflict, keyColumns } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { expiryInThePast } from "../problems.ts";
import { type ChangeResult, type ChangeRow, changeEntitlements } from "../store/change-entitlements.ts";

export interface EntitlementChange {
  readonly key: IdempotencyKey;
  readonly status: "ACTIVE" | "REVOKED";
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly reason: string;
  readonly purchase_id: string;
  /** When a grant runs out; never, if not given. RFC 3339, and kept to the millisecond. */
  readonly expires_at?: string;
}

export type ChangeEntitlement = (change: EntitlementChange) => Promise<Answer>;

// One batch is carried out while another waits for the disk: a sixth more are answered than with one lane.
const lanes = 3;

/** `onCommitted` hears of every batch that wrote events: the relay's wake-up. */
export function changeEntitlement(db: Db, onCommitted: () => void): ChangeEntitlement {
  const submit = gather<ChangeRow, Answer>({
    lanes,
    touches: (row) => [`key ${row.scope}\n${row.idem_key}`, `row ${row.user_id}\n${row.stock_keeping_unit}`],
    async run(rows) {
      const results = await changeEntitlements(db, rows);
      if (results.some(({ result }) => result === "first")) onCommitted();
      return results.map(toldOf);
    },
  });
  return (change) => submit(changeRow(change));
}

function toldOf(changed: ChangeResult): Answer | Error {
  if (changed.result === "too_late") return expiryInThePast("expires_at has passed already; nothing was granted");
  count("todoke.idempotency.requests", { result: changed.result });
  if (changed.result !== "conflict") return changed;
  return idempotencyConflict("this Idempotency-Key was first sent with another body; use a new key for a new command");
}

const eventTypes = { ACTIVE: "EntitlementGranted", REVOKED: "EntitlementRevoked" };

function changeRow(change: EntitlementChange): ChangeRow {
  const { key, status, user_id, stock_keeping_unit, reason, purchase_id, expires_at } = change;
  return {
    ...keyColumns(key),
    caller: callerOf(key),
    user_id,
    stock_keeping_unit,
    status,
    source: reason,
    source_id: purchase_id,
    // In UTC: offsets that RFC 3339 allows, and PostgreSQL does not, are gone by then.
    expires_at: expires_at === undefined ? null : new Date(expires_at).toISOString(),
    event_id: randomUUIDv7(),
    event_type: eventTypes[status],
    headers: traceHeaders(),
  };
}

/** A scope begins with who was authenticated, whose name has no space, and goes on with the route. */
const callerOf = ({ scope }: IdempotencyKey): string => scope.split(" ", 1)[0] ?? scope;
