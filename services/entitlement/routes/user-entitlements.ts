/** Reads of a user's entitlements: one, all of them by pages, and the history of one. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, shareReads } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { entitlementNotFound } from "../problems.ts";
import { selectEntitlements, selectFirstOfEach } from "../store/entitlements.ts";
import { selectHistory } from "../store/history.ts";
import {
  EntitlementStatus,
  EntitlementView,
  HistoryView,
  StockKeepingUnit,
  UserEntitlementView,
  UserId,
} from "./schemas.ts";

const readers = { key: "read", user: "own", staff: "VIEWER" } as const;

const EntitlementParams = Type.Object({ user_id: UserId, stock_keeping_unit: StockKeepingUnit });

const EntitlementPage = named("EntitlementPage", {
  user_id: UserId,
  entitlements: Type.Array(EntitlementView),
  next_cursor: NextCursor,
});
const HistoryPage = named("EntitlementHistoryPage", {
  ...EntitlementParams.properties,
  history: Type.Array(HistoryView),
  next_cursor: NextCursor,
});

export function userEntitlementRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  listsRoute(app, deps);
  checkRoute(app, deps);
  historyRoute(app, deps);
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/users/:user_id/entitlements",
    guarded(authenticate, readers, {
      operationId: "listEntitlements",
      summary: "List entitlements",
      tags: ["Entitlements"],
      description: "Returns all entitlements of a user, also revoked and expired ones, sorted by product.",
      params: Type.Object({ user_id: UserId }),
      querystring: Type.Object({ status: Type.Optional(EntitlementStatus), ...PageQuery }),
      response: { 200: EntitlementPage },
    }),
    async ({ params: { user_id }, query }) => {
      const after = parseCursor(query, { parts: ["text"] })?.[0] ?? "";
      const { rows, ...next } = await page(query, {
        read: (limit) => selectEntitlements(db, { userId: user_id, status: query.status, after, limit }),
        name: (row) => row.stock_keeping_unit,
      });
      return { user_id, entitlements: rows, ...next };
    },
  );
}

// With more the route for one user is called: it has pages, and the shared response stays below 300 kB.
const sharedMax = 20;

function listsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  shareReads(app, {
    authenticate,
    name: "entitlements",
    operationId: "listEntitlementsOfUsers",
    summary: "List the entitlements of many users",
    tag: "Entitlements",
    view: EntitlementPage,
    read: async (userIds) =>
      (await selectFirstOfEach(db, userIds, sharedMax + 1)).map((entitlements, index) =>
        entitlements.length > sharedMax ? null : { status: 200, value: { user_id: userIds[index], entitlements } },
      ),
  });
}

function checkRoute(app: HttpApp, { authenticate, checkEntitlement }: Deps): void {
  app.get(
    "/v1/users/:user_id/entitlements/:stock_keeping_unit",
    guarded(authenticate, readers, {
      operationId: "checkEntitlement",
      summary: "Check an entitlement",
      tags: ["Entitlements"],
      description: "Returns whether a user may use a product. The user may use it while `status` is ACTIVE.",
      params: EntitlementParams,
      refusals: [entitlementNotFound],
      response: { 200: UserEntitlementView },
    }),
    async ({ params: { user_id, stock_keeping_unit } }) => {
      const found = await checkEntitlement({ userId: user_id, stockKeepingUnit: stock_keeping_unit });
      if (!found) throw entitlementNotFound("this product was never granted to this user");
      return { user_id, ...found };
    },
  );
}

function historyRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/users/:user_id/entitlements/:stock_keeping_unit/history",
    guarded(authenticate, readers, {
      operationId: "listEntitlementHistory",
      summary: "List an entitlement's history",
      tags: ["Entitlements"],
      description: "Returns the changes of an entitlement, newest first, as far back as the audit is kept.",
      params: EntitlementParams,
      querystring: Type.Object(PageQuery),
      response: { 200: HistoryPage },
    }),
    async ({ params, query }) => {
      const name = { userId: params.user_id, stockKeepingUnit: params.stock_keeping_unit };
      const before = parseCursor(query, { parts: ["bigint"] })?.[0];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectHistory(db, { ...name, before, limit }),
        name: (row) => String(row.version),
      });
      return { ...params, history: rows, ...next };
    },
  );
}
