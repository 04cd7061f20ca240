/** Reconciliation: our orders as the broker should have them, and the result of the last comparison. */
import { type Db, type Queryable, rfc3339Sql, runStatement, toLastError } from "@todoke/kernel/db";
import type { OrderStatus } from "../order/order-status.ts";

export interface LocalOrder {
  readonly clientOrderId: string;
  /** The broker that it was placed with. */
  readonly adapter: string;
  readonly status: OrderStatus;
  readonly instrument: string;
  readonly side: string;
  readonly brokerOrderId: string | null;
  /** Whether both sides have the same quantity, compared as numbers. */
  readonly sameQty: boolean;
}

/** Our orders by client order ID. `qtys` are the broker's quantities, at the same indexes as `ids`. */
export async function selectLocalOrders(
  db: Db,
  { ids, qtys }: { readonly ids: readonly string[]; readonly qtys: readonly string[] },
): Promise<ReadonlyMap<string, LocalOrder>> {
  const { rows } = await db.query<LocalOrder>({
    name: "select local orders",
    text: `select o.client_order_id as "clientOrderId", o.adapter, o.status, o.instrument, o.side,
                  o.broker_order_id as "brokerOrderId", o.qty::text = i.qty or trim_scale(o.qty)::text = i.qty as "sameQty"
             from unnest($1::text[], $2::text[]) as i(id, qty)
             cross join lateral (select * from outbox_orders o where o.client_order_id = i.id limit 1) o`,
    values: [ids, qtys],
  });
  return new Map(rows.map((row) => [row.clientOrderId, row]));
}

/** Orders of a broker that succeeded before `to`, and were neither sent nor ended before `from`. */
export interface SucceededRange {
  readonly adapter: string;
  readonly from: Date;
  readonly to: Date;
}

/** One page. An order first sent before `from` is left out: the broker may have taken it before its list begins. */
export async function selectSucceeded(
  db: Db,
  { adapter, from, to, after, limit }: SucceededRange & { readonly after: string; readonly limit: number },
): Promise<readonly { readonly id: string; readonly clientOrderId: string }[]> {
  const { rows } = await db.query<{ id: string; clientOrderId: string }>({
    name: "select succeeded orders",
    text: `select id::text as id, client_order_id as "clientOrderId" from outbox_orders
            where status = 'succeeded' and done_at >= $1 and done_at < $2 and first_sent_at >= $1 and adapter = $3 and id > $4
            order by id limit $5`,
    values: [from.toISOString(), to.toISOString(), adapter, after, limit],
  });
  return rows;
}

/** Returns the database's time. */
export async function startReconciliation(db: Db, adapter: string): Promise<Date> {
  const { rows } = await runStatement<{ at: Date }>(db, {
    name: "start reconciliation",
    text: `insert into reconciliations as r (adapter, last_started_at) values ($1, clock_timestamp())
           on conflict (adapter) do update set last_started_at = excluded.last_started_at
           returning last_started_at as at`,
    values: [adapter],
  });
  return (rows[0] as { at: Date }).at;
}

export async function selectTime(db: Db): Promise<Date> {
  const { rows } = await db.query<{ at: Date }>(`select clock_timestamp() as at`);
  return (rows[0] as { at: Date }).at;
}

export interface ReconcileResult {
  readonly seen: number;
  readonly mismatches: number;
  /** The first mismatches. */
  readonly details: readonly unknown[];
}

export async function finishReconciliation(
  db: Db,
  adapter: string,
  { seen, mismatches, details }: ReconcileResult,
): Promise<void> {
  await runStatement(db, {
    name: "finish reconciliation",
    text: `update reconciliations
              set last_ok_at = clock_timestamp(), last_error = null, seen = $2, mismatches = $3, details = $4
            where adapter = $1`,
    values: [adapter, seen, mismatches, JSON.stringify(details)],
  });
}

export interface ReconciliationRow {
  readonly adapter: string;
  readonly last_started_at: string | null;
  readonly last_ok_at: string | null;
  readonly last_error: string | null;
  readonly seen: number;
  readonly mismatches: number;
  readonly details: readonly unknown[];
}

/** The last one of each broker. */
export async function selectReconciliations(db: Queryable): Promise<ReconciliationRow[]> {
  const { rows } = await db.query<ReconciliationRow>({
    name: "select reconciliations",
    text: `select adapter, ${rfc3339Sql("last_started_at")} as last_started_at, ${rfc3339Sql("last_ok_at")} as last_ok_at, last_error,
                  seen::float8 as seen, mismatches::float8 as mismatches, details
             from reconciliations order by adapter`,
  });
  return rows;
}

export async function failReconciliation(db: Db, adapter: string, error: string): Promise<void> {
  await runStatement(db, {
    name: "fail reconciliation",
    text: `update reconciliations set last_error = $2 where adapter = $1`,
    values: [adapter, toLastError(error)],
  });
}
