/** Routes for staff that a service serves: its dead letters, batches and acts, and what staff sees and does of users. */
import {
  AdjustPointsBody,
  ReasonBody,
  ResolveOrderBody,
  StaffGrantBody,
  StaffRevokeBody,
  TicketLimit,
  TradingStateBody,
} from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { BatchBody, DeadLetterActBody, DeadLetterFilterQuery, DeadLetterListQuery } from "@todoke/service";
import { type TObject, Type } from "typebox";
import type { UpstreamName } from "../problems.ts";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody, UserId } from "./schemas.ts";

const viewers = { staff: "VIEWER" } as const;
const operators = { staff: "OPERATOR" } as const;

const Service = Type.String({ minLength: 1, maxLength: 63, description: "The service.", examples: ["notification"] });
const Table = Type.String({ minLength: 1, maxLength: 63, description: "A table with dead letters." });
const Id = Type.String({ minLength: 1, maxLength: 128 });
const ofService = Type.Object({ service: Service });
const ofTable = Type.Object({ service: Service, table: Table });
const ofBatch = Type.Object({ service: Service, batch_id: Id });

type Texts = Pick<ForwardedRoute, "operationId" | "summary" | "description">;
type More = Partial<Pick<ForwardedRoute, "params" | "query" | "body" | "creates">>;

/** What every service has, below /v1/admin of the service. */
function ofEveryService(method: "GET" | "POST", path: string, texts: Texts & More): ForwardedRoute {
  const isChange = method === "POST";
  return {
    method,
    path: `/v1/admin/services/:service${path}`,
    upstreamPath: `/v1/admin${path.replace(/\(\[\^\/:\]\+\)::/, ":")}`,
    rule: isChange ? operators : viewers,
    tag: "Operations",
    ...(isChange && { idempotent: true }),
    params: ofService,
    response: PassThroughBody,
    ...texts,
  };
}

const verb = (path: string, name: string) => `${path}([^/:]+)::${name}`;

const operationsRoutes: readonly ForwardedRoute[] = [
  ofEveryService("GET", "/dead-letters/:table", {
    operationId: "listDeadLetters",
    summary: "List dead letters",
    description: "Returns the dead letters of a table that match the filter, oldest first.",
    params: ofTable,
    query: DeadLetterListQuery,
  }),
  ofEveryService("GET", verb("/dead-letters/:table", "preview"), {
    operationId: "previewDeadLetters",
    summary: "Count dead letters",
    description: "Counts the dead letters that match the filter, before a batch changes them.",
    params: ofTable,
    query: Type.Object(DeadLetterFilterQuery),
  }),
  ofEveryService("GET", "/dead-letters/:table/:id", {
    operationId: "getDeadLetter",
    summary: "Get a dead letter",
    description: "Returns a row with its payload and its redrives, also after it was redriven or discarded.",
    params: Type.Object({ service: Service, table: Table, id: Id }),
  }),
  ofEveryService("POST", verb("/dead-letters/:table", "redrive"), {
    operationId: "redriveDeadLetters",
    summary: "Redrive dead letters",
    description:
      "Makes dead letters ready again, with all their attempts. Of two operators who redrive a row, one does.",
    params: ofTable,
    body: DeadLetterActBody,
  }),
  ofEveryService("POST", verb("/dead-letters/:table", "discard"), {
    operationId: "discardDeadLetters",
    summary: "Discard dead letters",
    description: "Deletes dead letters, which are then never tried again. A copy is kept.",
    params: ofTable,
    body: DeadLetterActBody,
  }),
  ofEveryService("POST", "/dead-letter-batches", {
    operationId: "startDeadLetterBatch",
    summary: "Start a batch",
    description: "Redrives or discards all dead letters of a table that match the filter and were dead at the preview.",
    body: BatchBody,
    creates: true,
  }),
  ofEveryService("GET", "/dead-letter-batches", {
    operationId: "listDeadLetterBatches",
    summary: "List batches",
    description: "Returns the newest batches of dead letters.",
  }),
  ofEveryService("GET", "/dead-letter-batches/:batch_id", {
    operationId: "getDeadLetterBatch",
    summary: "Get a batch",
    description: "Returns how far a batch of dead letters is.",
    params: ofBatch,
  }),
  ofEveryService("POST", verb("/dead-letter-batches/:batch_id", "stop"), {
    operationId: "stopDeadLetterBatch",
    summary: "Stop a batch",
    description: "Stops a batch after its current step. What it has done stays.",
    params: ofBatch,
    body: ReasonBody,
  }),
];

interface Act extends Texts {
  readonly path: string;
  readonly upstream: UpstreamName;
  readonly tag: string;
  readonly body: TObject;
  readonly params?: TObject;
  readonly creates?: true;
}

/** An act on a user or an order, at the same path of the service. */
const act = ({ path, ...more }: Act): ForwardedRoute => ({
  method: "POST",
  path,
  upstreamPath: path.replace("([^/:]+)::", ":"),
  rule: operators,
  idempotent: true,
  response: PassThroughBody,
  ...more,
});

interface Read extends Texts {
  readonly path: string;
  readonly upstream: UpstreamName;
  readonly tag: string;
  readonly params?: TObject;
  readonly query?: TObject;
}

/** A read, at the same path of the service. */
const read = ({ path, ...more }: Read): ForwardedRoute => ({
  method: "GET",
  path,
  upstreamPath: path,
  rule: viewers,
  response: PassThroughBody,
  ...more,
});

const pages = Type.Object(PageQuery);
const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const userStaffRoutes: readonly ForwardedRoute[] = [
  act({
    path: "/v1/admin/users/:user_id/entitlement-grants",
    upstream: "entitlement",
    tag: "Entitlements",
    operationId: "grantEntitlementAsStaff",
    summary: "Grant an entitlement as staff",
    description: "Grants a product to a user, and records who did it and why.",
    body: StaffGrantBody,
    creates: true,
  }),
  act({
    path: "/v1/admin/users/:user_id/entitlement-revokes",
    upstream: "entitlement",
    tag: "Entitlements",
    operationId: "revokeEntitlementAsStaff",
    summary: "Revoke an entitlement as staff",
    description: "Revokes a product from a user, and records who did it and why.",
    body: StaffRevokeBody,
    creates: true,
  }),
  {
    ...read({
      path: "/v1/users/:user_id/entitlements/:stock_keeping_unit/history",
      upstream: "entitlement",
      tag: "Entitlements",
      operationId: "listEntitlementHistory",
      summary: "List an entitlement's history",
      description: "Returns the changes of an entitlement, newest first.",
      params: Type.Object({ user_id: UserId, stock_keeping_unit: Type.String({ minLength: 1, maxLength: 128 }) }),
      query: pages,
    }),
    rule: { user: "own", staff: "VIEWER" },
  },
  act({
    path: "/v1/admin/users/:user_id/point-adjustments",
    upstream: "points",
    tag: "Points",
    operationId: "adjustPoints",
    summary: "Adjust points",
    description: "Adds points to a user or spends them, and records who did it and why.",
    body: AdjustPointsBody,
  }),
  read({
    path: "/v1/admin/points/late-reservations",
    upstream: "points",
    tag: "Reservations",
    operationId: "listLateReservations",
    summary: "List late reservations",
    description: "Returns the reservations that are due and not granted, the longest due first.",
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Rows at most; the default is 50." })),
    }),
  }),
  read({
    path: "/v1/points/schedules",
    upstream: "points",
    tag: "Reservations",
    operationId: "listSchedules",
    summary: "List schedules",
    description: "Returns all schedules, newest first.",
    query: Type.Object({ status: text(16, "Only schedules in this status."), ...PageQuery }),
  }),
  read({
    path: "/v1/admin/users/:user_id/notifications",
    upstream: "notification",
    tag: "Notifications",
    operationId: "listUserNotifications",
    summary: "List notifications with their status",
    description: "Returns the notifications of a user, newest first, with what the sender did.",
    query: Type.Object({
      ...PageQuery,
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100, description: "Rows per page; the default is 50." }),
      ),
    }),
  }),
  read({
    path: "/v1/admin/users/:user_id/tickets",
    upstream: "matchmaking",
    tag: "Matchmaking",
    operationId: "listUserTickets",
    summary: "List tickets of a user",
    description: "Returns the tickets of a user in all modes, open and ended ones, the last joined first.",
    query: Type.Object({ ...PageQuery, limit: TicketLimit }),
  }),
];

const OrderRowId = Type.String({
  pattern: "^[1-9][0-9]{0,17}$",
  description: "Our ID of the order.",
  examples: ["42"],
});
const oneOrder = Type.Object({ id: OrderRowId });
const orders = { upstream: "orders", tag: "Orders" } as const;

const setTradingState = (path: string, texts: Texts, params?: TObject): ForwardedRoute => ({
  ...orders,
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

const orderRoutes: readonly ForwardedRoute[] = [
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

export const staffRoutes: readonly ForwardedRoute[] = [...operationsRoutes, ...userStaffRoutes, ...orderRoutes];
