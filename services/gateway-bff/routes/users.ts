/** Users, their entitlements and the admin routes: account and entitlement serve them. */
import { ReasonBody, RoleBody, SuspendBody, UpdateUserBody, UserView } from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import { propagateUserChange } from "../commands/propagate-user-change.ts";
import type { ForwardDeps, ForwardedRoute } from "./forward.ts";
import { PassThroughBody, UserId } from "./schemas.ts";

const own = { user: "own", staff: "ADMIN" } as const;
const ownOrStaff = { user: "own", staff: "VIEWER" } as const;
const viewers = { staff: "VIEWER" } as const;
const operators = { staff: "OPERATOR" } as const;
const admins = { staff: "ADMIN" } as const;

/** `/v1/users/{user_id}:delete`. Fastify accepts a colon after a parameter only behind a pattern. */
const verb = (path: string, name: string) => `${path}/:user_id([^:/]+)::${name}`;

const propagate = ({ sessions }: ForwardDeps, value: unknown) => propagateUserChange(sessions, value);

/** A command that changes a user. */
const userAction = (
  name: string,
  more: Pick<ForwardedRoute, "operationId" | "summary" | "description" | "body" | "rule">,
): ForwardedRoute => ({
  method: "POST",
  path: verb("/v1/admin/users", name),
  upstream: "account",
  upstreamPath: `/admin/users/:user_id:${name}`,
  tag: "Account",
  idempotent: true,
  afterResponse: propagate,
  response: UserView,
  ...more,
});

export const userRoutes: readonly ForwardedRoute[] = [
  {
    method: "GET",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: ownOrStaff,
    operationId: "getUser",
    tag: "Account",
    summary: "Get a user",
    description: "The ETag is the version, which an update names in If-Match.",
    returnsEtag: true,
    response: UserView,
  },
  {
    method: "PATCH",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: own,
    operationId: "updateUser",
    tag: "Account",
    summary: "Update a user",
    description: "Changes the name, the locale or both. If-Match must have the ETag of the current version.",
    body: UpdateUserBody,
    conditional: true,
    response: UserView,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id/entitlements",
    upstream: "entitlement",
    upstreamPath: "/v1/users/:user_id/entitlements",
    rule: ownOrStaff,
    operationId: "listEntitlements",
    tag: "Entitlements",
    summary: "List entitlements",
    description: "Returns all entitlements of a user, also revoked and expired ones, sorted by product.",
    query: Type.Object({
      status: Type.Optional(
        Type.Union(
          ["ACTIVE", "REVOKED", "EXPIRED"].map((status) => Type.Literal(status)),
          { description: "Only entitlements in this status." },
        ),
      ),
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
    tag: "Account",
    summary: "Export a user",
    description: "Returns all data of the user that account stores. The audit comes in pages.",
    query: Type.Object(PageQuery),
    response: PassThroughBody,
  },
  {
    ...userAction("delete", {
      operationId: "deleteUser",
      summary: "Delete a user",
      description: "Erases all personal data and ends every session. This cannot be undone.",
      body: ReasonBody,
      rule: own,
    }),
    needsFreshLogin: true,
    path: verb("/v1/users", "delete"),
    upstreamPath: "/users/:user_id:delete",
  },
  {
    method: "GET",
    path: "/v1/admin/users",
    upstream: "account",
    upstreamPath: "/admin/users",
    rule: viewers,
    operationId: "searchUsers",
    tag: "Account",
    summary: "Search users",
    description: "Filters by id, by e-mail, by provider and subject, or by the beginning of the name.",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      email: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 320,
          description: "The whole address; upper and lower case are equal.",
        }),
      ),
      provider: Type.Optional(
        Type.String({ minLength: 1, maxLength: 256, description: "The issuer of the identity. Requires `subject`." }),
      ),
      subject: Type.Optional(
        Type.String({ minLength: 1, maxLength: 255, description: "The user's id at the issuer. Requires `provider`." }),
      ),
      name: Type.Optional(
        Type.String({
          minLength: 3,
          maxLength: 100,
          description: "The beginning of the name, 3 characters at least; upper and lower case are equal.",
        }),
      ),
      ...PageQuery,
    }),
    response: PassThroughBody,
  },
  userAction("suspend", {
    operationId: "suspendUser",
    summary: "Suspend a user",
    description: "The suspension begins at once. It ends at `until`, or when staff reinstates the user.",
    rule: operators,
    body: SuspendBody,
  }),
  userAction("reinstate", {
    operationId: "reinstateUser",
    summary: "Reinstate a user",
    description: "Ends the suspension.",
    rule: operators,
    body: ReasonBody,
  }),
  userAction("grant-role", {
    operationId: "grantRole",
    summary: "Grant a role",
    description: "Grants a role of staff. A user who has the role already stays unchanged.",
    rule: admins,
    body: RoleBody,
  }),
  userAction("revoke-role", {
    operationId: "revokeRole",
    summary: "Revoke a role",
    description: "Revokes a role of staff. The last active admin cannot give up the role ADMIN.",
    rule: admins,
    body: RoleBody,
  }),
  {
    method: "GET",
    path: "/v1/admin/audit",
    upstream: "account",
    upstreamPath: "/admin/audit",
    rule: viewers,
    operationId: "listAudit",
    tag: "Account",
    summary: "List the audit",
    description: "Returns who changed which user, when and why; newest first.",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      actor: Type.Optional(
        Type.String({ minLength: 1, maxLength: 160, description: "Who made the change.", examples: ["user:<id>"] }),
      ),
      ...PageQuery,
    }),
    response: PassThroughBody,
  },
];
