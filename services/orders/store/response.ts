/** The response to an order request, as SQL over a row of outbox_orders. The ledger stores it, and every replay returns it. */
import { rfc3339Sql } from "@todoke/kernel/db";

export const ledgerStatusSql = (o: string): string =>
  `case ${o}.status when 'succeeded' then 'succeeded' when 'aborted' then 'failed' else 'accepted' end`;

/** Exact, or cut after 18 digits of the fraction if the quotient has more; null if nothing is filled. */
export const averagePriceSql = (notional: string, qty: string): string =>
  `trim_scale(div((${notional}) * 1e18, nullif(${qty}, 0)) * 1e-18)::text`;

/** Bytes. Attempts of an order in progress are left out, so that replays differ only if the result does. */
export const responseSql = (o: string): string => `
  convert_to(json_strip_nulls(json_build_object(
    'order_id', ${o}.order_id, 'idempotency_key', ${o}.idempotency_key, 'status', ${ledgerStatusSql(o)},
    'request_digest', ${o}.request_digest, 'client_order_id', ${o}.client_order_id,
    'accepted_at', ${rfc3339Sql(`${o}.created_at`)},
    'unresolved', case ${o}.status when 'unknown' then true end,
    'reason_code', case when ${o}.status in ('aborted', 'unknown') then ${o}.last_error_code end,
    'reason', case when ${o}.status in ('aborted', 'unknown') then ${o}.last_error_msg end,
    'broker_order_id', ${o}.broker_order_id,
    'result', ${o}.broker_result,
    'execution', ${o}.execution,
    'filled_qty', case when ${o}.execution is not null then trim_scale(${o}.filled_qty)::text end,
    'average_price', ${averagePriceSql(`${o}.filled_notional`, `${o}.filled_qty`)},
    'ended_at', ${rfc3339Sql(`${o}.done_at`)}))::text, 'utf8')`;
