/**
 * A route that is answered by a service: the request is checked here, asked there for the user of the session, and the
 * answer goes back to the byte. The service hears of the request what the route names, and nothing else.
 */
import { type HttpApp, IdempotencyHeaders, idempotencyKey, isLetInAsAdmin, type Rule, requires } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type TObject, type TSchema, Type } from "typebox";
import type { Deps } from "../deps.ts";
import type { LimitClass } from "../limits/settings.ts";
import { reauthenticationRequired, upstreamProblems } from "../problems.ts";
import type { Session } from "../sessions/index.ts";
import type { Answer, Call, UpstreamName } from "../upstreams/index.ts";
import { UserId } from "./schemas.ts";
import { userOf } from "./user-of.ts";

export interface Forwarded {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As Fastify has it. */
  readonly path: string;
  readonly upstream: UpstreamName;
  /** What its path names, where that is not just a user. */
  readonly params?: TObject;
  /** The path at the service; `:user_id`, and whatever else our path names, is as in ours, `:me` the user of the session. */
  readonly upstreamPath: string;
  readonly rule: Rule;
  /** What its rate limit is; by its method, where nothing is said. */
  readonly limit?: LimitClass;
  readonly operationId: string;
  readonly summary: string;
  readonly query?: TObject;
  readonly body?: TObject;
  readonly answers: TSchema;
  /** It may be answered with 201 too. */
  readonly creates?: true;
  /** It is a command: the same key, the same effect. */
  readonly idempotent?: true;
  /** Twice does no harm, though it is no GET: it may be tried once more. */
  readonly repeatable?: true;
  /** It changes one version and no other. */
  readonly conditional?: true;
  /** It cannot be undone: it needs a fresh log-in. What only an admin may do to others, and is no GET, needs one too. */
  readonly fresh?: true;
  /** What has to be done here before the answer goes out. */
  readonly after?: (deps: Deps, value: unknown) => void | Promise<void>;
}

export function forwardRoute(app: HttpApp, deps: Deps, route: Forwarded): void {
  const { method, path, rule, limit } = route;
  const { config, ...guarded } = requires(deps.authenticate, rule);
  app.route({
    method,
    url: path,
    ...guarded,
    config: { ...config, ...(limit && { limit }) },
    schema: schemaOf(route),
    handler: forwardTo(deps, route),
  });
}

const ConditionalHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({ pattern: "^[!-~]{1,100}$", description: "The ETag of what is to be changed.", examples: ['"3"'] }),
  ),
});

function schemaOf(route: Forwarded) {
  const { operationId, summary, path, params, query, body, answers, creates, idempotent, conditional } = route;
  return {
    operationId,
    summary,
    ...(path.includes(":user_id") && { params: Type.Object({ user_id: UserId }) }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    ...(idempotent && { headers: IdempotencyHeaders }),
    ...(conditional && { headers: ConditionalHeaders }),
    response: { 200: answers, ...(creates && { 201: answers }) },
  };
}

function forwardTo(deps: Deps, route: Forwarded) {
  const upstream = deps.upstreams[route.upstream];
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (!upstream) throw upstreamProblems[route.upstream].unavailable(`${route.upstream} is not deployed here`);
    if (needsFreshLogin(route, request)) refuseOldLogin(request.session, deps.reauthenticateMs);
    const answer = await upstream.call(callOf(route, request));
    await route.after?.(deps, answer.value);
    return sendOn(reply, answer);
  };
}

function needsFreshLogin({ fresh, method, rule }: Forwarded, { principal, params }: FastifyRequest): boolean {
  if (fresh) return true;
  return method !== "GET" && principal !== undefined && isLetInAsAdmin(principal, rule, params as { user_id?: string });
}

/** Whoever finds a session open must not be able to do the worst with it. */
function refuseOldLogin(session: Session | undefined, reauthenticateMs: number): void {
  const { authenticatedAgoMs = Number.POSITIVE_INFINITY } = session ?? {};
  if (reauthenticateMs === 0 || authenticatedAgoMs <= reauthenticateMs) return;
  throw reauthenticationRequired(
    `log in again at /login?reauthenticate=yes, and send it within ${reauthenticateMs / 60_000} minutes`,
  );
}

function callOf(route: Forwarded, request: FastifyRequest): Call {
  const user = userOf(request);
  const ifMatch = route.conditional && request.headers["if-match"];
  return {
    method: route.method,
    path: pathOf(route, request, user.userId),
    user,
    requestId: request.id,
    ...(route.body && { body: JSON.stringify(request.body) }),
    ...(route.idempotent && { idempotencyKey: idempotencyKey(request, request.caller).key }),
    ...(ifMatch !== undefined && { ifMatch }),
    ...(route.repeatable && { repeatable: true }),
  };
}

function pathOf({ upstreamPath, query }: Forwarded, request: FastifyRequest, me: string): string {
  const named: Readonly<Record<string, string>> = { ...(request.params as object), me };
  // What stands behind a colon and is no name is a verb, and stays.
  const path = upstreamPath.replace(/:(\w+)/g, (text, name: string) =>
    Object.hasOwn(named, name) ? encodeURIComponent(named[name] ?? "") : text,
  );
  if (!query) return path;
  // What the schema has let through, and in our own spelling.
  const asked = new URLSearchParams(
    Object.entries(request.query as object).map(([name, value]) => [name, String(value)]),
  );
  return asked.size > 0 ? `${path}?${asked}` : path;
}

function sendOn(reply: FastifyReply, { status, body, etag, replayed }: Answer): FastifyReply {
  reply.code(status);
  if (etag !== undefined) reply.header("etag", etag);
  if (replayed) reply.header("idempotency-replayed", "true");
  return body === "" ? reply.send() : sendJson(reply, body);
}

export const sendJson = (reply: FastifyReply, body: string): FastifyReply =>
  reply.header("content-type", "application/json; charset=utf-8").send(body);
