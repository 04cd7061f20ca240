/** The result so far, as SQL over a row of outbox_orders: what the ledger keeps, and every repeat of the request gets. */
import { utcText } from "@todoke/kernel/db";

export const ledgerStatusSql = (o: string): string =>
  `case ${o}.status when 'succeeded' then 'succeeded' when 'aborted' then 'failed' else 'accepted' end`;

/** Bytes. What an order that goes on has been through is not told here: it would change between two repeats for nothing. */
export const answerSql = (o: string): string => `
  convert_to(json_strip_nulls(json_build_object(
    'order_id', ${o}.order_id, 'idempotency_key', ${o}.idempotency_key, 'status', ${ledgerStatusSql(o)},
    'request_digest', ${o}.request_digest, 'client_order_id', ${o}.client_order_id,
    'accepted_at', ${utcText(`${o}.created_at`)},
    'unresolved', case ${o}.status when 'unknown' then true end,
    'reason_code', case when ${o}.status in ('aborted', 'unknown') then ${o}.last_error_code end,
    'reason', case when ${o}.status in ('aborted', 'unknown') then ${o}.last_error_msg end,
    'broker_order_id', ${o}.broker_order_id,
    'result', ${o}.broker_result,
    'ended_at', ${utcText(`${o}.done_at`)}))::text, 'utf8')`;
