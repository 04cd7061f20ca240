/** Who may call what, of every service: written down once more, so that a rule changes only when somebody means it to. */
import type { Rule } from "@todoke/http";
import type { ServiceName } from "./all-services.ts";

const ownOrAdmin: Rule = { user: "own", admin: true };
const ownOrAdminOrKey: Rule = { ...ownOrAdmin, key: "read" };
const admins: Rule = { admin: true };
const users: Rule = { user: "any" };
const usersOrKey: Rule = { ...users, key: "read" };
const back: Rule = { key: "entitlements:write" };
const everybody: Rule = { everybody: true };
const traders: Rule = { key: "orders:write", admin: true };
const auditors: Rule = { key: "read", admin: true };

/** What every service has. */
const common = {
  "GET /livez": everybody,
  "GET /readyz": everybody,
  "GET /openapi.json": everybody,
  "GET /docs": everybody,
  "GET /docs/": everybody,
  "GET /docs/js/scalar.js": everybody,
};

export const rules: Readonly<Record<ServiceName, Readonly<Record<string, Rule>>>> = {
  account: {
    ...common,
    "POST /identities:resolve": { service: ["gateway-bff"] },
    "GET /users/{user_id}": ownOrAdmin,
    "PATCH /users/{user_id}": ownOrAdmin,
    "GET /users/{user_id}/export": ownOrAdmin,
    "POST /users/{user_id}:delete": ownOrAdmin,
    "GET /admin/users": admins,
    "GET /admin/audit": admins,
    "POST /admin/users/{user_id}:suspend": admins,
    "POST /admin/users/{user_id}:reinstate": admins,
    "POST /admin/users/{user_id}:grant-role": admins,
    "POST /admin/users/{user_id}:revoke-role": admins,
  },
  entitlement: {
    ...common,
    "POST /v1/entitlements/grants": back,
    "POST /v1/entitlements/revokes": back,
    "POST /v1/entitlements/batch": back,
    "GET /v1/users/{user_id}/entitlements": ownOrAdminOrKey,
    "GET /v1/users/{user_id}/entitlements/{stock_keeping_unit}": ownOrAdminOrKey,
    "GET /v1/users/{user_id}/entitlements/{stock_keeping_unit}/history": ownOrAdminOrKey,
  },
  notification: {
    ...common,
    "GET /v1/users/{user_id}/inbox": ownOrAdminOrKey,
    "GET /v1/users/{user_id}/inbox/stream": ownOrAdminOrKey,
  },
  matchmaking: {
    ...common,
    "GET /v1/matchmaking/queues": usersOrKey,
    "GET /v1/matchmaking/queues/{mode}/stats": usersOrKey,
    "POST /v1/matchmaking/queues/{mode}/tickets": users,
    "GET /v1/matchmaking/tickets/{ticket_id}": users,
    "DELETE /v1/matchmaking/tickets/{ticket_id}": users,
    "POST /v1/matchmaking/tickets/{ticket_id}:heartbeat": users,
  },
  orders: {
    ...common,
    "POST /do/order": traders,
    "GET /do/order/{idempotency_key}": auditors,
    "POST /do/order/{idempotency_key}/cancel": traders,
    "GET /v1/orders": auditors,
    "GET /v1/orders/unresolved": auditors,
    "GET /v1/orders/{id}": auditors,
    "GET /v1/orders/{id}/history": auditors,
    "GET /v1/orders/trading-state": auditors,
    "PUT /v1/orders/trading-state": traders,
    "PUT /v1/orders/trading-state/{instrument}": traders,
  },
  "gateway-bff": {
    ...common,
    "GET /": everybody,
    "GET /page.css": everybody,
    "GET /page.js": everybody,
    "GET /docs/openapi.json": everybody,
    "GET /docs/openapi.yaml": everybody,
    "GET /openapi/{service}.json": everybody,
    "GET /login": everybody,
    "GET /login/callback": everybody,
    "POST /login/token": everybody,
    "POST /login/backchannel-logout": everybody,
    "POST /logout": users,
    "GET /v1/me": users,
    "GET /v1/sessions": users,
    "DELETE /v1/sessions/{session_id}": users,
    "POST /v1/sessions:revoke-others": users,
    "GET /v1/matchmaking/queues": users,
    "GET /v1/matchmaking/queues/{mode}/stats": users,
    "POST /v1/matchmaking/queues/{mode}/tickets": users,
    "GET /v1/matchmaking/tickets/{ticket_id}": users,
    "DELETE /v1/matchmaking/tickets/{ticket_id}": users,
    "POST /v1/matchmaking/tickets/{ticket_id}:heartbeat": users,
    "GET /v1/inbox": users,
    "GET /v1/inbox/stream": users,
    "GET /v1/users/{user_id}": ownOrAdmin,
    "PATCH /v1/users/{user_id}": ownOrAdmin,
    "GET /v1/users/{user_id}/profile": { user: "own" },
    "GET /v1/users/{user_id}/entitlements": ownOrAdmin,
    "GET /v1/users/{user_id}/export": ownOrAdmin,
    "POST /v1/users/{user_id}:delete": ownOrAdmin,
    "GET /v1/admin/users": admins,
    "GET /v1/admin/audit": admins,
    "POST /v1/admin/users/{user_id}:suspend": admins,
    "POST /v1/admin/users/{user_id}:reinstate": admins,
    "POST /v1/admin/users/{user_id}:grant-role": admins,
    "POST /v1/admin/users/{user_id}:revoke-role": admins,
  },
};
