/**
 * The routes that a service answers, as one table: path, service, who may. A service that lands here gets its lines, and
 * nothing else has to be written.
 */
import { type HttpApp, PageQuery } from "@todoke/http";
import { Type } from "typebox";
import { knownUserOf } from "../commands/known-user.ts";
import { spreadChange } from "../commands/spread-change.ts";
import type { Deps } from "../deps.ts";
import { accountInactive } from "../problems.ts";
import { type Forwarded, forwardRoute } from "./forward.ts";
import { matchmakingTable } from "./matchmaking.ts";
import { pointsTable } from "./points.ts";
import { AsTheServiceSays, Reason, Time, UserId, UserView } from "./schemas.ts";

export function tableRoutes(app: HttpApp, deps: Deps): void {
  for (const route of [...table, ...matchmakingTable, ...pointsTable]) forwardRoute(app, deps, route);
}

const own = { user: "own", admin: true } as const;
const admins = { admin: true } as const;

/** One more verb on a user: `/v1/users/{user_id}:delete`. Fastify takes a colon behind a name only behind a pattern. */
const verb = (path: string, name: string) => `${path}/:user_id([^:/]+)::${name}`;

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ["string", "null"] });
const Role = Type.Literal("ADMIN", { description: "USER comes with the account, and goes with it." });

const known = async ({ sessions }: Deps, value: unknown) => spreadChange(sessions, value);

/** What is known here may be behind by an event; what account says now is not. */
async function refuseInactive({ sessions }: Deps, value: unknown): Promise<void> {
  if ((value as { status?: unknown }).status === "ACTIVE") return;
  const user = knownUserOf(value);
  await sessions.know(user);
  throw accountInactive(user.status === "DELETED" ? "this account was deleted" : "this account is suspended");
}

/** An act of an admin on another user, or of a user on themself, after which the user is another than before. */
const act = (name: string, more: Pick<Forwarded, "operationId" | "summary" | "body">): Forwarded => ({
  method: "POST",
  path: verb("/v1/admin/users", name),
  upstream: "account",
  upstreamPath: `/admin/users/:user_id:${name}`,
  rule: admins,
  idempotent: true,
  after: known,
  answers: UserView,
  ...more,
});

const table: readonly Forwarded[] = [
  {
    method: "GET",
    path: "/v1/me",
    upstream: "account",
    upstreamPath: "/users/:me",
    rule: { user: "any" },
    operationId: "showMe",
    summary: "Who is logged in",
    after: refuseInactive,
    answers: UserView,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: own,
    operationId: "readUser",
    summary: "A user, with the ETag to change it by",
    answers: UserView,
  },
  {
    method: "PATCH",
    path: "/v1/users/:user_id",
    upstream: "account",
    upstreamPath: "/users/:user_id",
    rule: own,
    operationId: "updateUser",
    summary: "Changes what a user is called and spoken to in; If-Match names the version that was seen",
    body: Type.Object({
      display_name: Type.Optional(orNull({ minLength: 1, maxLength: 100, examples: ["Aki"] })),
      locale: Type.Optional(orNull({ minLength: 2, maxLength: 35, description: "BCP 47.", examples: ["ja-JP"] })),
    }),
    conditional: true,
    answers: UserView,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id/entitlements",
    upstream: "entitlement",
    upstreamPath: "/v1/users/:user_id/entitlements",
    rule: own,
    operationId: "listEntitlements",
    summary: "What a user has, and has had",
    query: Type.Object({
      status: Type.Optional(Type.Union(["ACTIVE", "REVOKED", "EXPIRED"].map((status) => Type.Literal(status)))),
      ...PageQuery,
    }),
    answers: AsTheServiceSays,
  },
  {
    method: "GET",
    path: "/v1/users/:user_id/export",
    upstream: "account",
    upstreamPath: "/users/:user_id/export",
    rule: own,
    limit: "bulk",
    operationId: "exportUser",
    summary: "All that account keeps of a user; the audit by pages",
    query: Type.Object(PageQuery),
    answers: AsTheServiceSays,
  },
  {
    ...act("delete", {
      operationId: "deleteUser",
      summary: "Removes a user's data for good and ends every session",
      body: Type.Object({ reason: Reason }),
    }),
    fresh: true,
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
    summary: "Users by id, e-mail or identity; exact matches",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      email: Type.Optional(Type.String({ minLength: 1, maxLength: 320 })),
      provider: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      subject: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
      ...PageQuery,
    }),
    answers: AsTheServiceSays,
  },
  act("suspend", {
    operationId: "suspendUser",
    summary: "Shuts a user out from now on, for good or until a time",
    body: Type.Object({ reason: Reason, until: Type.Optional(Time) }),
  }),
  act("reinstate", {
    operationId: "reinstateUser",
    summary: "Lets a suspended user in again",
    body: Type.Object({ reason: Reason }),
  }),
  act("grant-role", {
    operationId: "grantRole",
    summary: "Gives a user a role",
    body: Type.Object({ role: Role, reason: Reason }),
  }),
  act("revoke-role", {
    operationId: "revokeRole",
    summary: "Takes a role from a user",
    body: Type.Object({ role: Role, reason: Reason }),
  }),
  {
    method: "GET",
    path: "/v1/admin/audit",
    upstream: "account",
    upstreamPath: "/admin/audit",
    rule: admins,
    operationId: "listAudit",
    summary: "Who did what to whom, and why, newest first",
    query: Type.Object({
      user_id: Type.Optional(UserId),
      actor: Type.Optional(Type.String({ minLength: 1, maxLength: 160 })),
      ...PageQuery,
    }),
    answers: AsTheServiceSays,
  },
];
