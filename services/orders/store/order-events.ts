/** The payload of every order event. It is built in SQL, by the statement that changes the order. */
import { rfc3339Sql } from "@todoke/kernel/db";
import { insertEventsSql } from "@todoke/kernel/outbox";
import { averagePriceSql } from "./response.ts";

/** SQL over a row `o` of outbox_orders. */
export interface OrderEventsSql {
  readonly id: string;
  readonly type: string;
  /** The rows, as `o`. */
  readonly from: string;
  /** Default: that of the row. */
  readonly version?: string;
}

const subject = "orders.events";

/** The fields of every order event, over a row `o`. */
const orderFields = {
  caller: "o.caller",
  order_id: "o.order_id",
  client_order_id: "o.client_order_id",
  instrument: "o.instrument",
  side: "o.side",
  qty: "o.qty::text",
};

/** An INSERT statement. */
export const insertOrderEventsSql = ({ id, type, from, version = "o.version" }: OrderEventsSql): string =>
  insertEventsSql({
    from,
    subject,
    eventId: id,
    eventType: type,
    aggregateKey: "o.client_order_id",
    version,
    occurredAt: rfc3339Sql("o.updated_at"),
    headers: "o.headers",
    fields: orderFields,
    optionalFields: {
      user_id: "o.user_id",
      price: "o.price::text",
      broker_order_id: `case when ${type} = 'OrderSucceeded' then o.broker_order_id end`,
      reason_code: `case when ${type} in ('OrderFailed', 'OrderUnresolved') then o.last_error_code end`,
      reason: `case when ${type} in ('OrderFailed', 'OrderUnresolved') then o.last_error_msg end`,
    },
  });

/** An INSERT statement: an event for each fill `f`, of which `t` are the totals. The row `o` has them already. */
export const insertOrderFilledEventsSql = (from: string): string =>
  insertEventsSql({
    from,
    subject,
    eventId: "f.event_id",
    eventType: "'OrderFilled'",
    aggregateKey: "o.client_order_id",
    version: "(o.version - t.fills + f.n)::int",
    occurredAt: rfc3339Sql("o.updated_at"),
    headers: "o.headers",
    fields: {
      ...orderFields,
      trade_id: "f.trade_id",
      fill_qty: "trim_scale(f.qty)::text",
      fill_price: "trim_scale(f.price)::text",
      filled_at: rfc3339Sql("f.filled_at"),
      filled_qty: "trim_scale(o.filled_qty - t.qty + f.running_qty)::text",
      average_price: averagePriceSql(
        "o.filled_notional - t.notional + f.running_notional",
        "o.filled_qty - t.qty + f.running_qty",
      ),
    },
    optionalFields: {
      user_id: "o.user_id",
      price: "o.price::text",
      broker_order_id: "o.broker_order_id",
    },
  });
