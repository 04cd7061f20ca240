/** The events of orders, as SQL over a row `o` of outbox_orders. All of one order keep the order of its versions. */
import { utcText } from "@todoke/kernel/db";

/** A select list for outbox_events, for whoever has the event's id and type as SQL. */
export const eventColumns = "event_id, event_type, subject, aggregate_key, version, headers, payload";

export const eventSql = (o: string, { id, type }: { readonly id: string; readonly type: string }): string => `
  ${id}, ${type}, 'orders.events', ${o}.client_order_id, ${o}.version, ${o}.headers,
  jsonb_strip_nulls(jsonb_build_object(
    'event_id', ${id}, 'event_type', ${type}, 'occurred_at', ${utcText(`${o}.updated_at`)}, 'version', ${o}.version::text,
    'trace_id', ${o}.headers -> 'trace_id',
    'user_id', ${o}.caller, 'order_id', ${o}.order_id, 'client_order_id', ${o}.client_order_id,
    'instrument', ${o}.instrument, 'side', ${o}.side, 'qty', ${o}.qty::text, 'price', ${o}.price::text)
    || case ${type}
         when 'OrderSucceeded' then jsonb_build_object('broker_order_id', ${o}.broker_order_id)
         when 'OrderAccepted' then '{}'::jsonb
         else jsonb_build_object('reason_code', ${o}.last_error_code, 'reason', ${o}.last_error_msg) end)`;
