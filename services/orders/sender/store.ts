/**
 * The SQL of orders as work: how they are claimed, let go to the broker, and asked about while they are in doubt. A worker
 * claims the orders of its own broker alone: another, asked about one of them, would say in good faith that it never had it.
 */
import { type Claimed, type ClaimRequest, type Claims, claims } from "@todoke/kernel/claims";
import { type Db, statement } from "@todoke/kernel/db";
import type { ReasonCode } from "../order.ts";
import { ordersSql, outboxOrdersTable } from "../store/outbox-orders.ts";

/** What a worker gets to see of an order. */
export interface OrderRow {
  readonly id: string;
  readonly clientOrderId: string;
  readonly idempotencyKey: string;
  readonly instrument: string;
  readonly side: "BUY" | "SELL";
  readonly qty: string;
  readonly price: string | null;
  readonly timeInForce: "IOC" | "FOK" | "GTC";
  readonly maxSlippageBps: number | null;
  /** Bytes may be out, and what the broker made of them is not known. */
  readonly inDoubt: boolean;
  /** Since when, to the microsecond: a Date would round it. */
  readonly inDoubtSince: string | null;
  /** The timestamp of the last request, by the broker's clock. */
  readonly lastSentAt: Date | null;
  readonly lastErrorCode: ReasonCode | null;
  readonly asked: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Since it was accepted, by the database's clock. */
  readonly ageMs: number;
}

export type HeldOrder = Claimed<OrderRow>;

const read = `c.id::text as id, c.client_order_id as "clientOrderId", c.idempotency_key as "idempotencyKey", c.instrument,
  c.side, c.qty::text as qty, c.price::text as price, c.order_request_json ->> 'time_in_force' as "timeInForce",
  (c.order_request_json -> 'risk_constraints' ->> 'max_slippage_bps')::int as "maxSlippageBps",
  c.in_doubt_since is not null as "inDoubt", c.in_doubt_since::text as "inDoubtSince", c.last_sent_at as "lastSentAt",
  c.last_error_code as "lastErrorCode", c.asked, c.headers,
  (extract(epoch from clock_timestamp() - c.created_at) * 1000)::float8 as "ageMs"`;

const outboxOrders = claims<OrderRow>({ ...outboxOrdersTable, read });

/**
 * Orders to be sent. Before each claim those whose backoff is over are pending again; halted ones are left where they are. What
 * a dead sender may have sent is claimed all the same while all trading is halted: it is asked about, and then not sent.
 */
export const ordersToSend: Claims<OrderRow> = {
  ...outboxOrders,
  claim: async (db, request) => ((await makeReady(db)) ? outboxOrders : doubtsOfTheDead).claim(db, request),
};

/** To ask about an order is no attempt to send it, and is not counted as one. */
const doubtsOfTheDead = claims<OrderRow>({
  ...outboxOrdersTable,
  name: "doubts of the dead",
  read,
  claim: { where: "t.in_doubt_since is not null", expiredOnly: true, uncounted: true },
});

/** What is halted is not claimed, so that a halt of hours leaves no trail of tries; it is looked at again so often. */
export const haltedMs = 5_000;

/** False while all trading is halted. The limit bounds one round; the next comes at once when it was full. */
async function makeReady(db: Db): Promise<boolean> {
  const { rows } = await statement<{ all_halted: boolean }>(db, {
    name: "make orders ready",
    text: `
with halted as materialized (select scope from trading_state where mode <> 'active'),
again as (
  ${ordersSql.updateWaitingRows({ state: "failed", due: "now", set: "status = 'pending'", limit: "200" })}
),
put_off as (
  ${ordersSql.updateWaitingRows({
    state: "pending",
    due: "now",
    where: "t.instrument = any(array(select scope from halted))",
    dueInMs: `${haltedMs}`,
    limit: "(select case when count(*) > 0 then 200 else 0 end from halted)",
  })}
)
select exists (select from halted where scope = '*') as all_halted`,
  });
  return rows[0]?.all_halted === false;
}

/** What was put off is due now: trading may have been resumed. */
export async function freePutOff(db: Db): Promise<void> {
  await statement(db, {
    name: "free orders put off",
    text: ordersSql.updateWaitingRows({ state: "pending", due: "later", dueInMs: "0", limit: "10000" }),
  });
}

export interface Departure {
  readonly order: HeldOrder;
  /** What the request will be stamped with. */
  readonly stampedAt: Date;
  /** For so long from now on the broker may take it; 0 where it promises no end. */
  readonly windowMs: number;
  readonly leaseMs: number;
}

/**
 * The last step before the bytes: writes down that they may be out, and when. Only where the order is still ours, nothing
 * halts it and nobody wants it cancelled; the lease begins anew, so that it outlasts the request.
 */
export async function letGo(db: Db, { order, stampedAt, windowMs, leaseMs }: Departure): Promise<Leave> {
  const { key, epoch } = order.claim;
  const { rows } = await statement<{ left: boolean; halted: boolean; cancelled: boolean }>(db, {
    name: "let order go",
    text: `
with stop as materialized (
  select exists (select from trading_state s where s.scope in ('*', $5) and s.mode <> 'active') as halted,
         exists (select from cancel_requests c where c.order_row_id = $1 and c.status in ('requested', 'sending')) as cancelled
),
gone as (
  ${ordersSql.updateHeldRow({
    where: "t.status = 'sending' and not (select halted or cancelled from stop)",
    set: `in_doubt_since = coalesce(t.in_doubt_since, clock_timestamp()),
         first_sent_at = coalesce(t.first_sent_at, $3),
         -- What went before and is in doubt no more counts no more: its stamp may be that of a clock that was wrong.
         last_sent_at = case when t.in_doubt_since is null then $3::timestamptz else greatest(t.last_sent_at, $3) end,
         window_ends_at = case when $6::float8 > 0
           then greatest(case when t.in_doubt_since is not null then t.window_ends_at end,
                         clock_timestamp() + $6::float8 * interval '1 millisecond') end`,
    lease: { renewMs: "$4::float8" },
  })}
)
select exists (select from gone) as left, halted, cancelled from stop`,
    values: [key, epoch, stampedAt.toISOString(), leaseMs, order.instrument, windowMs],
  });
  const [said] = rows;
  if (said?.left) return "gone";
  if (said?.halted) return "halted";
  return said?.cancelled ? "cancelled" : "lost";
}

/** "lost": the lease is no longer ours. */
export type Leave = "gone" | "halted" | "cancelled" | "lost";

/**
 * When it is this order's turn, in ms, at so many per second over all senders. Turns are handed out one after the other; one
 * that is further away than `waitMaxMs` is not taken, and undefined is told.
 */
export async function takeTurn(
  db: Db,
  {
    adapter,
    perSecond,
    waitMaxMs,
  }: { readonly adapter: string; readonly perSecond: number; readonly waitMaxMs: number },
): Promise<number | undefined> {
  const { rows } = await statement<{ wait_ms: number }>(db, {
    name: "take broker turn",
    text: `
insert into broker_turns as t (adapter, next_at) values ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
on conflict (adapter) do update
   set next_at = greatest(t.next_at, clock_timestamp()) + $2::float8 * interval '1 millisecond'
 where t.next_at <= clock_timestamp() + $3::float8 * interval '1 millisecond'
returning (extract(epoch from next_at - clock_timestamp()) * 1000)::float8 - $2::float8 as wait_ms`,
    values: [adapter, 1_000 / perSecond, waitMaxMs],
  });
  const [turn] = rows;
  return turn && Math.max(0, turn.wait_ms);
}

/** Orders in doubt as work. They keep their status while they are asked about; the lease is what another worker respects. */
export const ordersInDoubt = claims<OrderRow>({
  ...outboxOrdersTable,
  name: "orders in doubt",
  states: { ...outboxOrdersTable.states, ready: "unknown", claimed: "unknown" },
  read,
  claim: { uncounted: true },
  // A worker that could not say what became of an order only lets go of it.
  settledByJobsOnly: true,
});

/**
 * The orders that are in doubt now, as work of one pass: each is claimed once, whenever it would be due, the longest in doubt
 * first. What comes into doubt meanwhile is left to the next pass, so that this one ends.
 */
export async function doubtsOfOnePass(db: Db): Promise<Claims<OrderRow>> {
  const { rows } = await db.query<{ at: string }>(`select clock_timestamp()::text as at`);
  const startedAt = rows[0]?.at;
  // The last one that was claimed. Its place in this order stays the same for as long as it is in doubt.
  let last = { since: "-infinity", id: "0" };
  return {
    ...ordersInDoubt,
    async claim(db, request) {
      const claimed = await claimDoubts(db, request, [last.since, last.id, startedAt]);
      const latest = claimed.at(-1);
      if (latest) last = { since: latest.inDoubtSince as string, id: latest.id };
      return claimed;
    },
  };
}

/** Orders in doubt behind a position, in the order of a pass: the kernel's claims know due times, and no positions. */
async function claimDoubts(
  db: Db,
  { limit, leaseMs, worker, queue }: ClaimRequest,
  position: readonly unknown[],
): Promise<HeldOrder[]> {
  const { rows } = await statement<OrderRow & { epoch: string; attempt: number }>(db, {
    name: "claim doubts of one pass",
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
select c.lease_epoch::text as epoch, c.attempts as attempt, ${read} from claimed c order by c.in_doubt_since, c.id`,
    values: [limit, worker, leaseMs, queue, ...position],
  });
  return rows.map(({ epoch, attempt, ...row }) => ({ ...row, claim: { key: row.id, epoch, attempt } }));
}

/**
 * Gives an order in doubt to the senders, as if the one who had it had died: the next claim takes it, counts the attempt, and
 * asks once more before it sends. For brokers that dedupe, and only for those.
 */
export async function giveToSenders(db: Db, { key, epoch }: HeldOrder["claim"]): Promise<boolean> {
  const { rowCount } = await statement(db, {
    name: "give doubt to senders",
    text: ordersSql.updateHeldRow({ set: "status = 'sending'", where: "t.status = 'unknown'", lease: "expire" }),
    values: [key, epoch],
  });
  return rowCount === 1;
}
