/**
 * Authentication and authorization. Every route of a service declares an access rule; any other caller is rejected before the body
 * is read, so that a stranger learns nothing from how a body is rejected. A service does not start with a route that
 * has no rule.
 *
 * Identity comes from an API key, or from a short-lived token that another service has signed (tokens.ts). Headers that merely
 * name a user are ignored.
 */
import { logFields } from "@todoke/kernel/telemetry";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from "fastify";
import { forbidden, unauthenticated } from "./problems.ts";

export const scopes = [
  "entitlements:write",
  "points:write",
  "orders:write",
  "orders:read-all",
  "orders:resume",
  "orders:cancel-all",
  "matchmaking:write",
  "read",
] as const;
export type Scope = (typeof scopes)[number];

/** Roles of people who work with the product. Each includes those before it. */
export const staffRoles = ["VIEWER", "OPERATOR", "ADMIN"] as const;
export type StaffRole = (typeof staffRoles)[number];

export const roles = ["USER", ...staffRoles] as const;
export type Role = (typeof roles)[number];

/** The holder of an API key. */
export interface KeyPrincipal {
  readonly kind: "key";
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Distinguishes the keys of one holder; a fixed key has none, because its holder has one. */
  readonly keyId?: string;
  /** The rate of this key; that of the service by default (limits/api-keys.ts). */
  readonly perSecond?: number;
}

/** The authenticated caller. Its name is part of every idempotency scope, so no two callers share it. */
export type Principal =
  | KeyPrincipal
  | { readonly kind: "user"; readonly name: `user:${string}`; readonly userId: string; readonly roles: readonly Role[] }
  | { readonly kind: "service"; readonly name: `service:${string}` };

/** Who may call a route. Each entry allows some callers; all others are rejected. */
export interface AccessRule {
  readonly isPublic?: true;
  /** An API key with this scope. */
  readonly key?: Scope;
  /** Any user, or only the one in the path's `:user_id`. */
  readonly user?: "own" | "any";
  /** A user with this role, or with one that includes it. */
  readonly staff?: StaffRole;
  /** A service that calls on its own behalf. */
  readonly service?: readonly string[];
}

/** Authenticates the caller, or throws a Problem. It may add headers to the response. */
export type Authenticate = (request: FastifyRequest, reply: FastifyReply) => Principal | Promise<Principal>;

export interface CredentialVerifiers {
  /** The holder of an API key; undefined if the key is unknown. */
  readonly verifyApiKey: (presented: string) => Principal | undefined | Promise<Principal | undefined>;
  /** The caller that a signed token names; throws a Problem if it is not valid. */
  readonly verifyToken: (token: string) => Principal | Promise<Principal>;
}

const bearer = /^bearer ([\x21-\x7e]{1,2048})$/i;
const signedToken = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

/** For services: a token or an API key, in the Authorization header. */
export function bearerAuthentication({ verifyApiKey, verifyToken }: CredentialVerifiers): Authenticate {
  const known = (principal: Principal | undefined): Principal => {
    if (!principal) throw unauthenticated("this API key is not known");
    return principal;
  };
  return (request) => {
    const presented = bearer.exec(request.headers.authorization ?? "")?.[1];
    if (!presented) throw unauthenticated("send an API key: Authorization: Bearer tdk_…");
    if (signedToken.test(presented)) return verifyToken(presented);
    const holder = verifyApiKey(presented);
    return holder instanceof Promise ? holder.then(known) : known(holder);
  };
}

/** For the options of a route. The handler finds the caller in `request.principal`, and its name in `request.caller`. */
export const requires = (authenticate: Authenticate, rule: AccessRule) => ({
  config: { rule },
  onRequest: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const principal = authenticate(request, reply);
    if (principal instanceof Promise) {
      principal.then((late) => authorize(request, late, rule)).then(() => done(), done);
      return;
    }
    authorize(request, principal, rule);
    done();
  },
});

/** The options of a route: who may call it, and its schema. */
export const guarded = <const Schema extends FastifySchema>(
  authenticate: Authenticate,
  rule: AccessRule,
  schema: Schema,
) => ({ ...requires(authenticate, rule), schema });

/** For the options of a route without authentication. */
export const publicRoute = { config: { rule: { isPublic: true } } } as const;

/** Before the caller can be rejected, so that the log names rejected callers. */
export function identify(request: FastifyRequest, principal: Principal): void {
  request.principal = principal;
  request.caller = principal.name;
}

function authorize(request: FastifyRequest, principal: Principal, rule: AccessRule): void {
  const params = request.params as { user_id?: string };
  identify(request, principal);
  if (!isAllowed(principal, rule, params)) throw forbidden(rejectionFor(principal, rule));
  if (isAllowedAsStaff(principal, rule, params)) {
    if (isActOnSelf(request, principal)) throw forbidden("only an admin may do this to their own user");
    request.log.info(
      { req: request, ...callerFields(request), ...(params.user_id && { user_id: params.user_id }) },
      "staff",
    );
  }
}

/** Whether only a staff role allows this call. Such calls concern other users and are logged. */
export function isAllowedAsStaff(
  principal: Principal,
  rule: AccessRule,
  params: { readonly user_id?: string },
): boolean {
  if (principal.kind !== "user" || !hasStaffRole(principal.roles, rule.staff)) return false;
  const { staff: _staff, ...others } = rule;
  return !isAllowed(principal, others, params);
}

/** Otherwise an operator could grant themselves anything, and the audit log would be the only thing in the way. */
function isActOnSelf({ method, params }: FastifyRequest, principal: Principal): boolean {
  if (principal.kind !== "user" || method === "GET" || method === "HEAD") return false;
  const { user_id } = params as { user_id?: string };
  return principal.userId === user_id && !hasStaffRole(principal.roles, "ADMIN");
}

/** Address and caller of a request, for the log. */
export function callerFields(request: FastifyRequest): Record<string, string> {
  const { server, caller } = request;
  return { [logFields.address]: server.sourceOf(request), ...(caller && { [logFields.caller]: caller }) };
}

export function isAllowed(principal: Principal, rule: AccessRule, { user_id }: { readonly user_id?: string }): boolean {
  switch (principal.kind) {
    case "key":
      return rule.key !== undefined && principal.scopes.includes(rule.key);
    case "service":
      return rule.service?.includes(principal.name.slice("service:".length)) ?? false;
    case "user":
      if (hasStaffRole(principal.roles, rule.staff)) return true;
      return rule.user === "any" || (rule.user === "own" && principal.userId === user_id);
  }
}

export function hasStaffRole(granted: readonly Role[], needed: StaffRole | undefined): boolean {
  if (needed === undefined) return false;
  return staffRoles.slice(staffRoles.indexOf(needed)).some((role) => granted.includes(role));
}

function rejectionFor(principal: Principal, rule: AccessRule): string {
  if (principal.kind === "user") {
    if (rule.user === "own") return "this belongs to another user";
    const isStaff = hasStaffRole(principal.roles, "VIEWER");
    return isStaff && rule.staff ? `this needs the role ${rule.staff}` : "this is not for players";
  }
  if (principal.kind === "key" && rule.key) {
    return `the API key of ${principal.name} does not have the scope ${rule.key}`;
  }
  return `this is not for ${principal.kind === "key" ? "API keys" : "services"}`;
}

export function decorateCallers(app: FastifyInstance): void {
  app.decorateRequest("caller", "");
  app.decorate("sourceOf", ({ ip }) => ip);
  app.decorateRequest("principal", undefined);
}

/** A route without a rule would be public by mistake: the app does not start with one. */
export function requireRules(app: FastifyInstance): void {
  const routes: RouteOptions[] = [];
  app.addHook("onRoute", (route) => void routes.push(route));
  app.addHook("onReady", async () => {
    const open = routes
      .filter(({ config }) => !config?.rule)
      .map(({ method, url }) => `${[method].flat().join()} ${url}`);
    if (open.length > 0) throw new Error(`no access rule for ${open.join(", ")}: give each one with requires()`);
  });
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call; see `requires`. */
    rule?: AccessRule;
  }
  interface FastifyInstance {
    /** The client address of a request; a service behind our own proxies overrides it. */
    sourceOf: (request: FastifyRequest) => string;
  }
  interface FastifyRequest {
    /** The name of the caller, set by `requires`; empty on a public route. */
    caller: string;
    principal: Principal | undefined;
  }
}
