/** Unresolved orders as jobs: the broker is asked about them. */
import { type Claims, createClaims } from "@todoke/kernel/claims";
import { type Db, runStatement } from "@todoke/kernel/db";
import { type ClaimedOrder, claimedColumns, type SendableOrder } from "./claimed-orders.ts";
import { ordersSql, outboxOrdersTable } from "./outbox-orders.ts";

/** They stay `unknown` while the broker is asked; only the lease keeps other workers away. */
const unresolvedSpec = {
  ...outboxOrdersTable,
  states: { ...outboxOrdersTable.states, ready: "unknown", claimed: "unknown" },
  select: claimedColumns,
  // A worker that cannot settle an order releases it: an unresolved order is never dead-lettered.
  settledByJobsOnly: true,
} as const;

export const unresolvedOrders = createClaims<SendableOrder>({
  ...unresolvedSpec,
  name: "unresolved orders",
  claim: { uncounted: true },
});

/** Claims behind a position, up to the start of the pass, whether due or not. */
const unresolvedInOrder = createClaims<SendableOrder>({
  ...unresolvedSpec,
  name: "unresolved orders of one pass",
  claim: {
    uncounted: true,
    orderBy: ["in_doubt_since", "id"],
    where: "(t.in_doubt_since, t.id) > ($5::timestamptz, $6::bigint) and t.in_doubt_since <= $7::timestamptz",
  },
});

/**
 * The orders that are unresolved now, each claimed once, oldest first. Orders that become unresolved during the pass are left
 * to the next one, so that this pass ends.
 */
export async function unresolvedOnce(db: Db): Promise<Claims<SendableOrder>> {
  const { rows } = await db.query<{ at: string }>(`select clock_timestamp()::text as at`);
  const startedAt = rows[0]?.at;
  // The position of the last claimed order. It does not change while the order is unresolved.
  let last = { since: "-infinity", id: "0" };
  return {
    ...unresolvedInOrder,
    async claim(db, request) {
      const claimed = await unresolvedInOrder.claim(db, { ...request, values: [last.since, last.id, startedAt] });
      const latest = claimed.at(-1);
      if (latest) last = { since: latest.unresolvedSince as string, id: latest.id };
      return claimed;
    },
  };
}

/**
 * Hands an unresolved order to the senders with an expired lease: the next claim counts an attempt and asks the broker again
 * before it sends. Only for brokers that deduplicate.
 */
export async function requeueForSend(db: Db, { key, epoch }: ClaimedOrder["claim"]): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "requeue for send",
    text: ordersSql.updateClaimedRow({ set: "status = 'sending'", where: "t.status = 'unknown'", lease: "expire" }),
    values: [key, epoch],
  });
  return rowCount === 1;
}
