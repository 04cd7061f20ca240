/** The backlog, read by the partial indexes that the workers use: ended orders cost nothing. */
import { type Delays, delayCountMax, lateMs, readDelays } from "@todoke/kernel/claims";
import type { Db, Queryable } from "@todoke/kernel/db";
import type { Need } from "@todoke/service";
import { ordersSql, outboxOrdersTable } from "./outbox-orders.ts";

export interface OrderBacklog {
  readonly pending: number;
  readonly sending: number;
  readonly failed: number;
  readonly unknown: number;
  /** Open at the broker. */
  readonly open: number;
  /** Age of the first order to be sent; 0 if there is none. */
  readonly oldestPendingMs: number;
  readonly oldestUnresolvedMs: number;
  /** Mismatches with the configured broker, found by the last reconciliation. */
  readonly mismatches: number;
  /** Since the last reconciliation; if there was none, since the first order. */
  readonly sinceReconciledMs: number;
}

const agoMs = (column: string) => `extract(epoch from clock_timestamp() - ${column}) * 1000`;

export interface BacklogQuery {
  /** The configured broker. */
  readonly adapter: string;
  /** All brokers: orders of one that was configured before count as well. */
  readonly adapters: readonly string[];
}

export async function selectBacklog(db: Db, { adapter, adapters }: BacklogQuery): Promise<OrderBacklog> {
  const { rows } = await db.query<OrderBacklog>({
    name: "select order backlog",
    text: `select ${ordersSql.count("pending")} as pending, ${ordersSql.count("sending")} as sending,
                  ${ordersSql.count("failed")} as failed, ${ordersSql.count("unknown")} as unknown,
                  (select count(*) from followed_orders where status = 'open')::int as open,
                  coalesce((select max(${agoMs("first.created_at")}) from unnest($2::text[]) as b(adapter)
                             cross join lateral (select o.created_at from outbox_orders o
                                                  where o.status = 'pending' and o.adapter = b.adapter
                                                  order by o.${ordersSql.dueAtColumn} limit 1) first), 0)::float8 as "oldestPendingMs",
                  coalesce((select ${agoMs("in_doubt_since")} from outbox_orders
                             where status = 'unknown' order by in_doubt_since limit 1), 0)::float8 as "oldestUnresolvedMs",
                  coalesce((select mismatches from reconciliations where adapter = $1), 0)::int as mismatches,
                  coalesce(${agoMs(`coalesce((select last_ok_at from reconciliations where adapter = $1),
                                             (select created_at from outbox_orders order by created_at limit 1))`)},
                           0)::float8 as "sinceReconciledMs"`,
    values: [adapter, adapters],
  });
  return rows[0] as OrderBacklog;
}

export interface WaitingAge {
  readonly adapter: string;
  readonly ageMs: number;
}

// Enough for a 95th percentile, few enough to read every few seconds.
const sampleMax = 100;

const dueAt = ordersSql.dueAtColumn;

export const waitingAgesSql = `
select w.adapter, (${agoMs("w.created_at")})::float8 as "ageMs"
  from (select p.* from unnest($1::text[]) as b(adapter)
         cross join lateral (select o.adapter, o.created_at from outbox_orders o
                              where o.status = 'pending' and o.adapter = b.adapter
                              order by o.${dueAt} limit ${sampleMax}) p
        union all
        (select o.adapter, o.created_at from outbox_orders o
          where o.status = 'failed' order by o.${dueAt} limit ${sampleMax})) w`;

/** Ages of orders that wait to be sent: of each broker and status the first hundred to be due, however many there are. */
export async function selectWaitingAges(db: Db, adapters: readonly string[]): Promise<readonly WaitingAge[]> {
  const { rows } = await db.query<WaitingAge>({
    name: "select waiting ages",
    text: waitingAgesSql,
    values: [adapters],
  });
  return rows;
}

const { queue: _, ...anyBroker } = outboxOrdersTable;

/** Orders between two attempts, unresolved ones, which count from when they became unresolved, and orders that a halt holds. */
export async function readOrderDelays(db: Queryable): Promise<readonly Delays[]> {
  const inState = (state: string) => ({ ...anyBroker.states, ready: state, claimed: state });
  const unresolved = { ...anyBroker.columns, dueAt: "in_doubt_since" };
  const named = async (name: string, delays: Promise<Delays>) => ({
    ...(await delays),
    table: `outbox_orders (${name})`,
  });
  return [
    await named("failed", readDelays(db, { ...anyBroker, states: inState("failed") })),
    await named("unknown", readDelays(db, { ...anyBroker, states: inState("unknown"), columns: unresolved })),
    await named("held by a halt of trading", readHalted(db)),
  ];
}

/** Only a halt makes a pending order due later. */
async function readHalted(db: Queryable): Promise<Delays> {
  const { rows } = await db.query<Pick<Delays, "late" | "oldestMs">>(
    `select count(*)::int as late, coalesce(max(${agoMs("created_at")}), 0)::float8 as "oldestMs"
       from (select o.created_at, o.${dueAt} as due_at from outbox_orders o where o.status = 'pending'
              order by o.adapter, o.${dueAt} limit ${delayCountMax}) o
      where o.due_at > now() and o.created_at <= now() - ${lateMs} * interval '1 millisecond'`,
  );
  return { table: "", failing: 0, lastError: null, parked: 0, ...(rows[0] as Pick<Delays, "late" | "oldestMs">) };
}

/** Orders of which the broker does not say whether it has them. */
export async function readOrderNeeds(db: Queryable): Promise<readonly Need[]> {
  const { rows } = await db.query<{ count: number; oldest_s: number }>({
    name: "count unresolved orders",
    text: `select count(*)::int as count, coalesce(extract(epoch from now() - min(in_doubt_since)), 0)::int as oldest_s
             from (select in_doubt_since from outbox_orders where status = 'unknown'
                    order by in_doubt_since, id limit ${delayCountMax}) o`,
  });
  const { count, oldest_s } = rows[0] ?? { count: 0, oldest_s: 0 };
  if (count === 0) return [];
  const detail = `orders are in doubt, the oldest for ${oldest_s} s: the broker has neither confirmed nor denied them`;
  const cure = { text: "Ask the broker, then resolve them.", href: "/console/orders" };
  const capped = count >= delayCountMax;
  return [{ service: "orders", kind: "in-doubt", table: "outbox_orders", count, capped, detail, cure }];
}
