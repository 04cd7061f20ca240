/** The events of orders. All of one order keep the order of its versions. */
import { utcText } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";

/** `id` and `type` of the event, as SQL over a row `o` of outbox_orders. */
export interface OrderEventsSql {
  readonly id: string;
  readonly type: string;
  /** The rows, as `o`. */
  readonly from: string;
}

/** The text of an INSERT. */
export const insertOrderEventsSql = ({ id, type, from }: OrderEventsSql): string =>
  insertEventsSql({
    from,
    subject: "orders.events",
    eventId: id,
    eventType: type,
    aggregateKey: "o.client_order_id",
    version: "o.version",
    occurredAt: utcText("o.updated_at"),
    headers: "o.headers",
    fields: {
      caller: "o.caller",
      order_id: "o.order_id",
      client_order_id: "o.client_order_id",
      instrument: "o.instrument",
      side: "o.side",
      qty: "o.qty::text",
    },
    optionalFields: {
      user_id: "o.user_id",
      price: "o.price::text",
      broker_order_id: `case when ${type} = 'OrderSucceeded' then o.broker_order_id end`,
      reason_code: `case when ${type} in ('OrderFailed', 'OrderUnresolved') then o.last_error_code end`,
      reason: `case when ${type} in ('OrderFailed', 'OrderUnresolved') then o.last_error_msg end`,
    },
  });
