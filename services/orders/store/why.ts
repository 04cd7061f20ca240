/** The look-ups of an id in the tables of orders. */
import { aggregateAt, claimEntrySql, entriesSql, type Lookup } from "@todoke/kernel/why";
import { cancelRequests } from "./cancel-requests.ts";
import { outboxOrdersTable } from "./outbox-orders.ts";

const stepsMax = 30;
const fillsMax = 20;

/** By the name that the caller or the broker knows it by, or by its key: each has an index. */
const namedOrders = `
  select id from outbox_orders where order_id = $1
  union select id from outbox_orders where client_order_id = $1
  union select id from outbox_orders where idempotency_key = $1
  limit 5`;

/** The latest of a user. */
const ofUser = "select id from outbox_orders where user_id = $1 order by created_at desc, id desc limit 5";

const links = [
  ["order", "o.client_order_id"],
  ["user", "o.user_id"],
  ["trace", "o.headers ->> 'trace_id'"],
] as const;

/** The order, its steps, its fills and its cancel. `ids` selects the row ids. */
const orderEntries = (ids: string) => {
  const orders = `(${ids}) i cross join lateral (select * from outbox_orders r where r.id = i.id limit 1) o`;
  const ofOrder = (table: string, order: string, limit: number) =>
    `${orders} cross join lateral (select * from ${table} r where r.order_row_id = o.id order by ${order} limit ${limit}) s`;
  return [
    entriesSql({
      ...claimEntrySql(outboxOrdersTable, "o"),
      kind: "'order'",
      id: "o.client_order_id",
      at: "o.created_at",
      traceId: "o.headers ->> 'trace_id'",
      detail:
        "concat_ws(' ', o.side, trim_scale(o.qty), o.instrument, 'as order', o.order_id, 'of', o.caller, '(row ' || o.id || ')', o.execution)",
      // An aborted order is not redriven: a new order has a new key.
      deadLetter: "null",
      links,
      from: orders,
    }),
    entriesSql({
      kind: "'step'",
      id: "o.client_order_id",
      at: "s.at",
      state: "s.to_status",
      attempt: "s.attempt",
      process: "s.by",
      error: "s.code || coalesce(': ' || s.detail, '')",
      detail: "coalesce('from ' || s.from_status, 'accepted')",
      links: [...links, ["aggregate", aggregateAt("o.client_order_id", "s.at")]],
      from: ofOrder("order_status_history", "r.place desc", stepsMax),
    }),
    entriesSql({
      kind: "'fill'",
      id: "s.trade_id",
      at: "s.recorded_at",
      detail: "trim_scale(s.qty) || ' at ' || trim_scale(s.price)",
      links: [...links, ["aggregate", aggregateAt("o.client_order_id", "s.recorded_at")]],
      from: ofOrder("order_fills", "r.version desc", fillsMax),
    }),
    entriesSql({
      ...claimEntrySql(cancelRequests.table, "s"),
      kind: "'cancel'",
      id: "o.client_order_id",
      at: "s.requested_at",
      process: "s.requested_by",
      deadLetter: "null",
      links,
      from: ofOrder("cancel_requests", "r.order_row_id", 1),
    }),
  ].join("\nunion all\n");
};

export const orderLookups: readonly Lookup[] = [
  { by: "order", shape: "text", sql: orderEntries(namedOrders) },
  { by: "user", shape: "text", sql: orderEntries(ofUser) },
  { by: "order", shape: "number", sql: orderEntries("select $1::bigint as id") },
];
