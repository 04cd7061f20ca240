/** Unresolved orders as jobs: the broker is asked about them. */
import { type ClaimRequest, type Claims, createClaims } from "@todoke/kernel/claims";
import { type Db, runStatement } from "@todoke/kernel/db";
import { type ClaimedOrder, claimedColumns, type SendableOrder } from "./claimed-orders.ts";
import { ordersSql, outboxOrdersTable } from "./outbox-orders.ts";

/** They stay `unknown` while the broker is asked; only the lease keeps other workers away. */
export const unresolvedOrders = createClaims<SendableOrder>({
  ...outboxOrdersTable,
  name: "unresolved orders",
  states: { ...outboxOrdersTable.states, ready: "unknown", claimed: "unknown" },
  select: claimedColumns,
  claim: { uncounted: true },
  // A worker that cannot settle an order releases it: an unresolved order is never dead-lettered.
  settledByJobsOnly: true,
});

/**
 * The orders that are unresolved now, each claimed once, oldest first, whether due or not. Orders that become unresolved during the
 * pass are left to the next one, so that this pass ends.
 */
export async function unresolvedOnce(db: Db): Promise<Claims<SendableOrder>> {
  const { rows } = await db.query<{ at: string }>(`select clock_timestamp()::text as at`);
  const startedAt = rows[0]?.at;
  // The position of the last claimed order. It does not change while the order is unresolved.
  let last = { since: "-infinity", id: "0" };
  return {
    ...unresolvedOrders,
    async claim(db, request) {
      const claimed = await claimUnresolved(db, request, [last.since, last.id, startedAt]);
      const latest = claimed.at(-1);
      if (latest) last = { since: latest.unresolvedSince as string, id: latest.id };
      return claimed;
    },
  };
}

/** Claims behind a position. The kernel's claims go by due time and cannot do this. */
async function claimUnresolved(
  db: Db,
  { limit, leaseMs, worker, queue }: ClaimRequest,
  position: readonly unknown[],
): Promise<ClaimedOrder[]> {
  const { rows } = await runStatement<SendableOrder & { epoch: string; attempt: number }>(db, {
    name: "claim unresolved of one pass",
    text: `
with due as materialized (
  select id from outbox_orders
   where adapter = $4 and status = 'unknown'
     and (in_doubt_since, id) > ($5::timestamptz, $6::bigint) and in_doubt_since <= $7::timestamptz
     and (lease_until is null or lease_until <= statement_timestamp())
   order by in_doubt_since, id limit $1 for update skip locked
),
claimed as (
  update outbox_orders
     set lease_epoch = lease_epoch + 1, locked_by = $2, locked_at = clock_timestamp(),
         lease_until = clock_timestamp() + $3::float8 * interval '1 millisecond'
   where id = any(array(select id from due))
  returning *
)
select c.lease_epoch::text as epoch, c.attempts as attempt, ${claimedColumns} from claimed c order by c.in_doubt_since, c.id`,
    values: [limit, worker, leaseMs, queue, ...position],
  });
  return rows.map(({ epoch, attempt, ...row }) => ({ ...row, claim: { key: row.id, epoch, attempt } }));
}

/**
 * Hands an unresolved order to the senders with an expired lease: the next claim counts an attempt and asks once more before it
 * sends. Only for brokers that deduplicate.
 */
export async function requeueForSend(db: Db, { key, epoch }: ClaimedOrder["claim"]): Promise<boolean> {
  const { rowCount } = await runStatement(db, {
    name: "requeue for send",
    text: ordersSql.updateClaimedRow({ set: "status = 'sending'", where: "t.status = 'unknown'", lease: "expire" }),
    values: [key, epoch],
  });
  return rowCount === 1;
}
