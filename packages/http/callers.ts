/**
 * Who calls, and who may. Every route of a service declares a rule; whoever the rule does not name is refused before
 * anything of the body is read, so that a stranger learns nothing from how a body is refused. A route without a rule
 * keeps the service from starting.
 *
 * Identity comes from two things only: an API key, or a short-lived token that another service has signed (tokens.ts). No
 * header that merely names a user is ever looked at.
 */
import { logFields } from "@todoke/kernel/telemetry";
import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { forbidden, unauthenticated } from "./problems.ts";

export const scopes = [
  "entitlements:write",
  "points:write",
  "orders:write",
  "orders:read-all",
  "orders:resume",
  "matchmaking:write",
  "read",
] as const;
export type Scope = (typeof scopes)[number];

export const roles = ["USER", "ADMIN"] as const;
export type Role = (typeof roles)[number];

/** Who calls, once it is proven. The name is the caller in every idempotency scope: no two callers share it. */
export type Principal =
  | { readonly kind: "key"; readonly name: string; readonly scopes: readonly Scope[] }
  | { readonly kind: "user"; readonly name: `user:${string}`; readonly userId: string; readonly roles: readonly Role[] }
  | { readonly kind: "service"; readonly name: `service:${string}` };

/** Who may call a route. Each entry lets some in; whoever is in none of them is refused. */
export interface Rule {
  readonly everybody?: true;
  /** An API key with this scope. */
  readonly key?: Scope;
  /** A user: any, or only the one that the path's `:user_id` names. */
  readonly user?: "own" | "any";
  /** A user with the role ADMIN. */
  readonly admin?: true;
  /** A service that calls for itself and for no user. */
  readonly service?: readonly string[];
}

/** Proves who calls, or throws the refusal. */
export type Authenticate = (request: FastifyRequest) => Principal | Promise<Principal>;

export interface Proofs {
  /** Whose API key it is; nothing when it is nobody's. */
  readonly keyHolder: (presented: string) => Principal | undefined | Promise<Principal | undefined>;
  /** Whom a signed token speaks for; throws the refusal. */
  readonly tokenBearer: (token: string) => Principal | Promise<Principal>;
}

const bearer = /^bearer ([\x21-\x7e]{1,2048})$/i;
const signedToken = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

/** For services: a token or an API key, in the Authorization header. */
export function bearerAuthentication({ keyHolder, tokenBearer }: Proofs): Authenticate {
  const known = (principal: Principal | undefined): Principal => {
    if (!principal) throw unauthenticated("this API key is not known");
    return principal;
  };
  return (request) => {
    const presented = bearer.exec(request.headers.authorization ?? "")?.[1];
    if (!presented) throw unauthenticated("send an API key: Authorization: Bearer tdk_…");
    if (signedToken.test(presented)) return tokenBearer(presented);
    const holder = keyHolder(presented);
    return holder instanceof Promise ? holder.then(known) : known(holder);
  };
}

/** For the options of a route. The route finds who it is in `request.principal`, and by name in `request.caller`. */
export const requires = (authenticate: Authenticate, rule: Rule) => ({
  config: { rule },
  onRequest: (request: FastifyRequest, _reply: unknown, done: (error?: Error) => void): void => {
    const principal = authenticate(request);
    if (principal instanceof Promise) {
      principal.then((late) => letIn(request, late, rule)).then(() => done(), done);
      return;
    }
    letIn(request, principal, rule);
    done();
  },
});

/** For the options of a route that asks nobody who they are. */
export const everybody = { config: { rule: { everybody: true } } } as const;

function letIn(request: FastifyRequest, principal: Principal, rule: Rule): void {
  const params = request.params as { user_id?: string };
  // Before the decision: the log names who was refused.
  request.principal = principal;
  request.caller = principal.name;
  if (!mayCall(principal, rule, params)) throw forbidden(refusalOf(principal, rule));
  if (isLetInAsAdmin(principal, rule, params)) {
    request.log.info(
      { req: request, ...whoAsks(request), ...(params.user_id && { user_id: params.user_id }) },
      "admin",
    );
  }
}

/** Whether nothing but the role ADMIN lets this user in: it is about others, and is worth a line in the log. */
export function isLetInAsAdmin(principal: Principal, rule: Rule, params: { readonly user_id?: string }): boolean {
  if (principal.kind !== "user" || !rule.admin || !principal.roles.includes("ADMIN")) return false;
  const { admin: _admin, ...others } = rule;
  return !mayCall(principal, others, params);
}

/** Where a request comes from and who sent it, for the log. */
export function whoAsks(request: FastifyRequest): Record<string, string> {
  const { server, caller } = request;
  return { [logFields.address]: server.sourceOf(request), ...(caller && { [logFields.caller]: caller }) };
}

export function mayCall(principal: Principal, rule: Rule, { user_id }: { readonly user_id?: string }): boolean {
  switch (principal.kind) {
    case "key":
      return rule.key !== undefined && principal.scopes.includes(rule.key);
    case "service":
      return rule.service?.includes(principal.name.slice("service:".length)) ?? false;
    case "user":
      if (rule.admin && principal.roles.includes("ADMIN")) return true;
      return rule.user === "any" || (rule.user === "own" && principal.userId === user_id);
  }
}

function refusalOf(principal: Principal, rule: Rule): string {
  if (principal.kind === "user") {
    return rule.user === "own" ? "this belongs to another user" : "this is not for players";
  }
  if (principal.kind === "key" && rule.key) {
    return `the API key of ${principal.name} does not have the scope ${rule.key}`;
  }
  return `this is not for ${principal.kind === "key" ? "API keys" : "services"}`;
}

export function knowCallers(app: FastifyInstance): void {
  app.decorateRequest("caller", "");
  app.decorate("sourceOf", ({ ip }) => ip);
  app.decorateRequest("principal", undefined);
}

/** What was registered without a rule would be open to everybody by oversight: the app does not start with it. */
export function requireRules(app: FastifyInstance): void {
  const routes: RouteOptions[] = [];
  app.addHook("onRoute", (route) => void routes.push(route));
  app.addHook("onReady", async () => {
    const open = routes
      .filter(({ config }) => !config?.rule)
      .map(({ method, url }) => `${[method].flat().join()} ${url}`);
    if (open.length > 0)
      throw new Error(`nobody says who may call ${open.join(", ")}: give each a rule with requires()`);
  });
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call; see `requires`. */
    rule?: Rule;
  }
  interface FastifyInstance {
    /** The address that a request comes from; a service behind proxies of ours knows better than the socket. */
    sourceOf: (request: FastifyRequest) => string;
  }
  interface FastifyRequest {
    /** The name of who asked, once `requires` knows it; empty on a route that lets everybody in. */
    caller: string;
    principal: Principal | undefined;
  }
}
