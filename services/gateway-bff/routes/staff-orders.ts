/** Orders of all callers, the kill switch and orders in doubt, for staff. */
import { ResolveOrderBody, TradingStateBody } from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { type TObject, Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody } from "./schemas.ts";
import { act, operators, read, type Texts, text } from "./staff-acts.ts";

const pages = Type.Object(PageQuery);
const OrderRowId = Type.String({
  pattern: "^[1-9][0-9]{0,17}$",
  description: "Our ID of the order.",
  examples: ["42"],
});
const oneOrder = Type.Object({ id: OrderRowId });
const orders = { upstream: "orders", tag: "Orders" } as const;

const setTradingState = (path: string, texts: Texts, params?: TObject): ForwardedRoute => ({
  ...orders,
  tag: "Trading state",
  method: "PUT",
  path,
  upstreamPath: path,
  rule: operators,
  repeatable: true,
  body: TradingStateBody,
  response: PassThroughBody,
  ...(params && { params }),
  ...texts,
});

export const staffOrderRoutes: readonly ForwardedRoute[] = [
  read({
    ...orders,
    path: "/v1/orders",
    operationId: "listOrders",
    summary: "List orders",
    description: "Returns the orders of all callers, newest first.",
    query: Type.Object({
      status: text(16, "Only orders in this status."),
      instrument: text(64, "Only orders of this instrument."),
      order_id: text(64, "Only orders with this ID of their caller."),
      user_id: text(128, "Only orders of this player."),
      from: Type.Optional(Type.String({ format: "date-time", description: "Accepted at this time or later." })),
      to: Type.Optional(Type.String({ format: "date-time", description: "Accepted before this time." })),
      ...PageQuery,
    }),
  }),
  read({
    ...orders,
    path: "/v1/orders/unresolved",
    operationId: "listUnresolvedOrders",
    summary: "List unresolved orders",
    description: "Returns, oldest first, orders that the broker has neither confirmed nor denied.",
    query: pages,
  }),
  read({
    ...orders,
    tag: "Trading state",
    path: "/v1/orders/trading-state",
    operationId: "getTradingState",
    summary: "Get the trading state",
    description: "Lists what was set for all instruments (*) and for each. Instruments that are not listed are active.",
  }),
  read({
    ...orders,
    path: "/v1/orders/:id",
    operationId: "getOrder",
    summary: "Get an order",
    description: "Returns the order of any caller.",
    params: oneOrder,
  }),
  read({
    ...orders,
    path: "/v1/orders/:id/history",
    operationId: "listOrderHistory",
    summary: "List an order's history",
    description: "Returns the state transitions of the order, oldest first.",
    params: oneOrder,
    query: pages,
  }),
  read({
    ...orders,
    path: "/v1/orders/:id/fills",
    operationId: "listOrderFills",
    summary: "List an order's fills",
    description: "Returns the fills of the order in the order in which they were recorded.",
    params: oneOrder,
    query: pages,
  }),
  setTradingState("/v1/orders/trading-state", {
    operationId: "setTradingState",
    summary: "Set the trading state",
    description: "Stops or resumes trading of all instruments, from the next send on.",
  }),
  setTradingState(
    "/v1/orders/trading-state/:instrument",
    {
      operationId: "setTradingStateOfInstrument",
      summary: "Set the state of an instrument",
      description: "Stops or resumes trading of one instrument.",
    },
    Type.Object({ instrument: Type.String({ minLength: 1, maxLength: 64, description: "What is traded." }) }),
  ),
  act({
    ...orders,
    path: "/v1/admin/orders/:id([^/:]+)::resolve",
    operationId: "resolveOrder",
    summary: "Resolve an order",
    description: "Decides whether the broker has an order that it has neither confirmed nor denied.",
    params: oneOrder,
    body: ResolveOrderBody,
  }),
  read({
    ...orders,
    path: "/v1/admin/orders/reconciliations",
    operationId: "listReconciliations",
    summary: "List reconciliations",
    description: "Returns the last comparison of our orders with those of each broker.",
  }),
];
