/** The payload of every order event. It is built in SQL, by the statement that changes the order. */
import { rfc3339Sql } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";

/** SQL over a row `o` of outbox_orders. */
export interface OrderEventsSql {
  readonly id: string;
  readonly type: string;
  /** The rows, as `o`. */
  readonly from: string;
}

/** An INSERT statement. */
export const insertOrderEventsSql = ({ id, type, from }: OrderEventsSql): string =>
  insertEventsSql({
    from,
    subject: "orders.events",
    eventId: id,
    eventType: type,
    aggregateKey: "o.client_order_id",
    version: "o.version",
    occurredAt: rfc3339Sql("o.updated_at"),
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
