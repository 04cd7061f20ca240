/**
 * Routes that a service serves. The gateway validates the request, calls the service for the user of the session, and
 * returns the response byte for byte. The service receives only what the route names.
 */
import {
  type AccessRule,
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  isAllowedAsStaff,
  problems,
  requires,
} from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type TObject, type TSchema, Type } from "typebox";
import type { LimitClass } from "../config.ts";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { changeNotPropagated, reauthenticationRequired, type UpstreamName, upstreamProblems } from "../problems.ts";
import type { Session } from "../sessions/index.ts";
import type { Call, UpstreamResponse } from "../upstreams/index.ts";
import { UserId } from "./schemas.ts";

export interface ForwardedRoute {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** In Fastify's syntax. */
  readonly path: string;
  /** Undefined: the service in the path's `:service`. */
  readonly upstream?: UpstreamName;
  /** The parameters of the path, if they are not only a user. */
  readonly params?: TObject;
  /** The path at the service, with the parameters of `path`. */
  readonly upstreamPath: string;
  readonly rule: AccessRule;
  /** Its rate limit, by default that of its method. */
  readonly limit?: LimitClass;
  /** The same as at the service. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly query?: TObject;
  readonly body?: TObject;
  readonly response: TSchema;
  /** It may also return 201. */
  readonly creates?: true;
  /** It needs an Idempotency-Key. */
  readonly idempotent?: true;
  /** It may be retried although it is no GET. */
  readonly repeatable?: true;
  /** The response has an ETag; so has that of a route that passes If-Match on. */
  readonly returnsEtag?: true;
  /** It passes If-Match on. */
  readonly conditional?: true;
  /** How long the service may take, if longer than other calls. */
  readonly timeoutMs?: number;
  /** It cannot be undone, so it needs a fresh login. Changes that only staff may make always need one. */
  readonly needsFreshLogin?: true;
  /** Runs before the response is sent. */
  readonly afterResponse?: (deps: ForwardDeps, value: unknown) => void | Promise<void>;
}

export type ForwardDeps = Pick<Deps, "authenticate" | "sessions" | "upstreams" | "reauthenticateMs">;

export function forwardRoute(app: HttpApp, deps: ForwardDeps, route: ForwardedRoute): void {
  const { method, path, rule, limit } = route;
  const { config, ...guarded } = requires(deps.authenticate, rule);
  app.route({
    method,
    url: path,
    ...guarded,
    config: { ...config, ...(limit && { limit }) },
    schema: toSchema(route),
    handler: forwardTo(deps, route),
  });
}

const ConditionalHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({ pattern: "^[!-~]{1,100}$", description: "The ETag of the version to change.", examples: ['"3"'] }),
  ),
});

function toSchema(route: ForwardedRoute) {
  const {
    operationId,
    tag,
    summary,
    description,
    path,
    params,
    query,
    body,
    response,
    creates,
    idempotent,
    conditional,
    upstream,
    method,
    rule,
    needsFreshLogin,
    returnsEtag = conditional,
  } = route;
  return {
    operationId,
    summary,
    tags: [tag],
    description,
    ...(path.includes(":user_id") && { params: Type.Object({ user_id: UserId }) }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    ...(idempotent && { headers: IdempotencyHeaders }),
    ...(conditional && { headers: ConditionalHeaders }),
    passesOnRefusals: true,
    refusals: [
      ...(upstream ? [upstreamProblems[upstream]] : Object.values(upstreamProblems)).flatMap((its) =>
        Object.values(its),
      ),
      ...(route.afterResponse ? [changeNotPropagated] : []),
      ...(upstream ? [] : [problems.notFound]),
      ...(method !== "GET" && (needsFreshLogin || rule.staff) ? [reauthenticationRequired] : []),
    ],
    ...(returnsEtag && { responseHeaders: ["etag" as const] }),
    response: { 200: response, ...(creates && { 201: response }) },
  };
}

function forwardTo(deps: ForwardDeps, route: ForwardedRoute) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const name = route.upstream ?? serviceInPath(request);
    const upstream = deps.upstreams[name];
    if (!upstream) throw upstreamProblems[name].unavailable(`${name} is not deployed here`);
    if (requiresFreshLogin(route, request)) rejectStaleLogin(request.session, deps.reauthenticateMs);
    const response = await upstream.call(toCall(route, request));
    await route.afterResponse?.(deps, response.value);
    return sendOn(reply, response);
  };
}

function serviceInPath({ params }: FastifyRequest): UpstreamName {
  const { service = "" } = params as { readonly service?: string };
  if (Object.hasOwn(upstreamProblems, service)) return service as UpstreamName;
  throw problems.notFound(`there is no service ${service}`);
}

function requiresFreshLogin(route: ForwardedRoute, { principal, params }: FastifyRequest): boolean {
  const { needsFreshLogin, method, rule } = route;
  if (needsFreshLogin) return true;
  return (
    method !== "GET" && principal !== undefined && isAllowedAsStaff(principal, rule, params as { user_id?: string })
  );
}

/** Limits the damage of a session that was left open. */
export function rejectStaleLogin(session: Session | undefined, reauthenticateMs: number): void {
  const { authenticatedAgoMs = Number.POSITIVE_INFINITY } = session ?? {};
  if (reauthenticateMs === 0 || authenticatedAgoMs <= reauthenticateMs) return;
  throw reauthenticationRequired(
    `log in again at /login?reauthenticate=yes and retry within ${reauthenticateMs / 60_000} minutes`,
  );
}

function toCall(route: ForwardedRoute, request: FastifyRequest): Call {
  const user = sessionUser(request);
  const ifMatch = route.conditional && request.headers["if-match"];
  return {
    method: route.method,
    path: toPath(route, request),
    user,
    requestId: request.id,
    ...(route.body && { body: JSON.stringify(request.body) }),
    ...(route.idempotent && { idempotencyKey: idempotencyKey(request, request.caller).key }),
    ...(ifMatch !== undefined && { ifMatch }),
    ...(route.repeatable && { repeatable: true }),
    ...(route.timeoutMs !== undefined && { timeoutMs: route.timeoutMs }),
  };
}

function toPath({ upstreamPath, query }: ForwardedRoute, request: FastifyRequest): string {
  const params: Readonly<Record<string, string>> = { ...(request.params as object) };
  // A colon before an unknown name is part of a verb, like `:delete`, and stays.
  const path = upstreamPath.replace(/:(\w+)/g, (text, name: string) =>
    Object.hasOwn(params, name) ? encodeURIComponent(params[name] ?? "") : text,
  );
  const search = query ? toSearch(request.query as object) : "";
  return search ? `${path}?${search}` : path;
}

/** Encodes a validated query. */
export const toSearch = (query: object): string =>
  new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();

export function sendOn(reply: FastifyReply, { status, body, etag, replayed }: UpstreamResponse): FastifyReply {
  reply.code(status);
  if (etag !== undefined) reply.header("etag", etag);
  if (replayed) reply.header("idempotency-replayed", "true");
  return body === "" ? reply.send() : sendJson(reply, body);
}

export const sendJson = (reply: FastifyReply, body: string): FastifyReply =>
  reply.header("content-type", "application/json; charset=utf-8").send(body);
