/** Lists and details of orders: the caller's own, or those of all callers with the scope orders:read-all. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { orderNotFound } from "../problems.ts";
import { selectHistory } from "../store/history.ts";
import { selectFills } from "../store/order-fills.ts";
import { type OrderCursor, type OrderRow, selectOrder, selectOrders, selectUnresolved } from "../store/orders.ts";
import { readers, visibleTo } from "./access.ts";
import { FillView, ListQuery, OrderView, RowId, StepView } from "./schemas.ts";

const OneOrder = Type.Object({ id: RowId });
const Page = named("OrderPage", { orders: Type.Array(OrderView), next_cursor: NextCursor });
const HistoryPage = named("OrderHistoryPage", { id: RowId, history: Type.Array(StepView), next_cursor: NextCursor });

const FillsPage = named("OrderFillsPage", { id: RowId, fills: Type.Array(FillView), next_cursor: NextCursor });

export function ordersRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  unresolvedRoute(app, deps);
  getRoute(app, deps);
  historyRoute(app, deps);
  fillsRoute(app, deps);
}

/** "2026-01-31T09:30:00.000000Z 42" */
const timeAndId = { parts: ["timeMicros", "bigint"] } as const;
const formatCursor = (at: string, id: string) => `${at} ${id}`;

function parsePosition(query: { readonly cursor?: string }): OrderCursor | undefined {
  const [created_at, id] = parseCursor(query, timeAndId) ?? [];
  return created_at === undefined || id === undefined ? undefined : { created_at, id };
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/orders",
    guarded(authenticate, readers, {
      operationId: "listOrders",
      summary: "List orders",
      description: "Returns your own orders, newest first; with the scope orders:read-all, those of all callers.",
      tags: ["Orders"],
      querystring: Type.Object({ ...ListQuery, ...PageQuery }),
      response: { 200: Page },
    }),
    async (request) => {
      const { query } = request;
      const [after, caller] = [parsePosition(query), visibleTo(request)];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectOrders(db, { ...query, caller, after, limit }),
        name: (row: OrderRow) => formatCursor(row.created_at, row.id),
      });
      return { orders: rows, ...next };
    },
  );
}

function unresolvedRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/orders/unresolved",
    guarded(authenticate, readers, {
      operationId: "listUnresolvedOrders",
      summary: "List unresolved orders",
      description: "Returns, oldest first, orders that were sent and that the broker has neither confirmed nor denied.",
      tags: ["Orders"],
      querystring: Type.Object(PageQuery),
      response: { 200: Page },
    }),
    async (request) => {
      const { query } = request;
      const [after, caller] = [parsePosition(query), visibleTo(request)];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectUnresolved(db, { caller, after, limit }),
        name: (row: OrderRow) => formatCursor(row.in_doubt_since as string, row.id),
      });
      return { orders: rows, ...next };
    },
  );
}

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/orders/:id",
    guarded(authenticate, readers, {
      operationId: "getOrder",
      summary: "Get an order",
      description: "Returns your own order; with the scope orders:read-all, that of any caller.",
      tags: ["Orders"],
      params: OneOrder,
      refusals: [orderNotFound],
      response: { 200: OrderView },
    }),
    async (request) => {
      const { id } = request.params;
      const order = await selectOrder(db, id, visibleTo(request));
      if (!order) throw orderNotFound(noOrder(id));
      return order;
    },
  );
}

/** Also for an order of another caller: its existence is not revealed. */
const noOrder = (id: string) => `There is no order ${id}.`;

function historyRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/orders/:id/history",
    guarded(authenticate, readers, {
      operationId: "listOrderHistory",
      summary: "List an order's history",
      description: "Returns the state transitions of the order, oldest first.",
      tags: ["Orders"],
      params: OneOrder,
      querystring: Type.Object(PageQuery),
      refusals: [orderNotFound],
      response: {
        200: HistoryPage,
      },
    }),
    async (request) => {
      const { params, query } = request;
      const [{ id }, caller] = [params, visibleTo(request)];
      const after = Number(parseCursor(query, { parts: ["int"] })?.[0] ?? 0);
      const { rows, ...next } = await page(query, {
        read: (limit) => selectHistory(db, { id, caller, after, limit }),
        name: (row) => String(row.place),
      });
      if (rows.length === 0 && after === 0) throw orderNotFound(noOrder(id));
      return { id, history: rows, ...next };
    },
  );
}

function fillsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/orders/:id/fills",
    guarded(authenticate, readers, {
      operationId: "listOrderFills",
      summary: "List an order's fills",
      description: "Returns the fills of the order in the order in which they were recorded.",
      tags: ["Orders"],
      params: OneOrder,
      querystring: Type.Object(PageQuery),
      refusals: [orderNotFound],
      response: { 200: FillsPage },
    }),
    async (request) => {
      const { params, query } = request;
      const [{ id }, caller] = [params, visibleTo(request)];
      const after = Number(parseCursor(query, { parts: ["int"] })?.[0] ?? 0);
      const { rows, ...next } = await page(query, {
        read: async (limit) => {
          const fills = await selectFills(db, { id, caller, after, limit });
          if (!fills) throw orderNotFound(noOrder(id));
          return [...fills];
        },
        name: (row) => String(row.place),
      });
      return { id, fills: rows, ...next };
    },
  );
}
