/** Users, their entitlements and the admin routes: account and entitlement serve them. */
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import { propagateUserChange } from "../commands/propagate-user-change.ts";
import { accountInactive } from "../problems.ts";
import { parseUser } from "../upstreams/user-view.ts";
import type { ForwardDeps, ForwardedRoute } from "./forward.ts";
import { PassThroughBody, Reason, Time, UserId, UserView } from "./schemas.ts";

const own = { user: "own", admin: true } as const;
const admins = { admin: true } as const;

/** `/v1/users/{user_id}:delete`. Fastify accepts a colon after a parameter only behind a pattern. */
const verb = (path: string, name: string) => `${path}/:user_id([^:/]+)::${name}`;

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ["string", "null"] });
const Role = Type.Literal("ADMIN", {
  description: "Every account has the role USER; it cannot be granted or revoked.",
});

const propagate = ({ sessions }: ForwardDeps, value: unknown) => propagateUserChange(sessions, value);

/** The gateway's copy may lag behind by an event; account's response does not. */
async function rejectInactive({ sessions }: ForwardDeps, value: unknown): Promise<void> {
  if ((value as { status?: unknown }).status === "ACTIVE") return;
  const user = parseUser(value);
  await sessions.saveUser(user);
  throw accountInactive(user.status === "DELETED" ? "this account was deleted" : "this account is suspended");
}

/** A command that changes a user. */
const userAction = (name: string, more: Pick<ForwardedRoute, "operationId" | "summary" | "body">): ForwardedRoute => ({
  method: "POST",
  path: verb("/v1/admin/users", name),
  upstream: "account",
  upstreamPath: `/admin/users/:user_id:${name}`,
  rule: admins,
  idempotent: true,
  afterResponse: propagate,
  response: UserView,
  ...more,
});

export const userRoutes: readonly ForwardedRoute[] = [
  {
    method: "GET",
    path: "/v1/me",
    upstream: "account",
    upstreamPath: "/users/:me",
    rule: { user: "any" },
    operationId: "getMe",
    summary: "Get the user who is logged in.",
    afterResponse: rejectInactive,
    response: UserView,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: own,
    operationId: "getUser",
    summary: "Get a user. The ETag is for If-Match of a change.",
    response: UserView,
  },
  {
    method: "PATCH",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: own,
    operationId: "updateUser",
    summary: "Change a user's name or locale. If-Match must have the ETag of the current version.",
    body: Type.Object({
      display_name: Type.Optional(orNull({ minLength: 1, maxLength: 100, examples: ["Aki"] })),
      locale: Type.Optional(orNull({ minLength: 2, maxLength: 35, description: "BCP 47.", examples: ["ja-JP"] })),
    }),
    conditional: true,
    response: UserView,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id/entitlements",
    upstream: "entitlement",
    upstreamPath: "/v1/users/:user_id/entitlements",
    rule: own,
    operationId: "listEntitlements",
    summary: "List a user's entitlements, past ones included.",
    query: Type.Object({
      status: Type.Optional(Type.Union(["ACTIVE", "REVOKED", "EXPIRED"].map((status) => Type.Literal(status)))),
      ...PageQuery,
    }),
    response: PassThroughBody,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id/export",
    upstream: "account",
    upstreamPath: "/users/:user_id/export",
    rule: own,
    limit: "bulk",
    operationId: "exportUser",
    summary: "Export all data of a user that account stores, with the audit log by pages.",
    query: Type.Object(PageQuery),
    response: PassThroughBody,
  },
  {
    ...userAction("delete", {
      operationId: "deleteUser",
      summary: "Delete a user's data and end every session. This cannot be undone.",
      body: Type.Object({ reason: Reason }),
    }),
    needsFreshLogin: true,
    path: verb("/v1/users", "delete"),
    upstreamPath: "/users/:user_id:delete",
    rule: own,
  },
  {
    method: "GET",
    path: "/v1/admin/users",
    upstream: "account",
    upstreamPath: "/admin/users",
    rule: admins,
    operationId: "searchUsers",
    summary: "Search users by ID, email or identity. Matches are exact.",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      email: Type.Optional(Type.String({ minLength: 1, maxLength: 320 })),
      provider: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      subject: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
      ...PageQuery,
    }),
    response: PassThroughBody,
  },
  userAction("suspend", {
    operationId: "suspendUser",
    summary: "Suspend a user at once, until a time or until reinstated.",
    body: Type.Object({ reason: Reason, until: Type.Optional(Time) }),
  }),
  userAction("reinstate", {
    operationId: "reinstateUser",
    summary: "Reinstate a suspended user.",
    body: Type.Object({ reason: Reason }),
  }),
  userAction("grant-role", {
    operationId: "grantRole",
    summary: "Grant a role to a user.",
    body: Type.Object({ role: Role, reason: Reason }),
  }),
  userAction("revoke-role", {
    operationId: "revokeRole",
    summary: "Revoke a role of a user.",
    body: Type.Object({ role: Role, reason: Reason }),
  }),
  {
    method: "GET",
    path: "/v1/admin/audit",
    upstream: "account",
    upstreamPath: "/admin/audit",
    rule: admins,
    operationId: "listAudit",
    summary: "List the audit log, newest first.",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      actor: Type.Optional(Type.String({ minLength: 1, maxLength: 160 })),
      ...PageQuery,
    }),
    response: PassThroughBody,
  },
];
