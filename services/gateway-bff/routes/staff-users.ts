/** Routes with which staff reads and changes a user. The profile, suspension and roles are in users.ts. */
import { AdjustPointsBody, StaffGrantBody, StaffRevokeBody, TicketLimit } from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { UserId } from "./schemas.ts";
import { act, read, text } from "./staff-acts.ts";

export const staffUserRoutes: readonly ForwardedRoute[] = [
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
      query: Type.Object(PageQuery),
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
    path: "/v1/admin/points/upcoming-reservations",
    upstream: "points",
    tag: "Reservations",
    operationId: "listUpcomingReservations",
    summary: "List upcoming reservations",
    description: "Returns the reservations that become due next, the soonest first.",
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Rows at most; the default is 50." })),
    }),
  }),
  read({
    path: "/v1/points/schedules",
    upstream: "points",
    tag: "Schedules",
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
    tag: "Tickets",
    operationId: "listUserTickets",
    summary: "List tickets of a user",
    description: "Returns the tickets of a user in all modes, open and ended ones, the last joined first.",
    query: Type.Object({ ...PageQuery, limit: TicketLimit }),
  }),
];
