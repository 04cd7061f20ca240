/**
 * A Fastify that keeps the promises of every service's edge: bodies are read strictly, each request is bounded in size and
 * time, every refusal is problem+json with all its faults, every answer has a request id, and /openapi.json tells it all.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RawServerDefault,
} from "fastify";
import { setAnswerHeaders } from "./answer-headers.ts";
import { knowCallers, requireRules } from "./callers.ts";
import { answerClientError } from "./client-error.ts";
import { type ConnectionBounds, trackConnections } from "./connections.ts";
import type { IsOurHost } from "./hosts.ts";
import { type LogOptions, openLog } from "./log.ts";
import { describeRoutes } from "./openapi.ts";
import { answerWithProblem, answerWithProblems, refuseUnknownRoute } from "./problem-handler.ts";
import { unavailable, unknownHost } from "./problems.ts";
import { requestIdOf } from "./request-id.ts";
import { requestLogSettings, writeLog } from "./request-log.ts";
import { tellOfRequests } from "./request-telemetry.ts";
import { holdRoutesToTheirSchemas } from "./route-contract.ts";
import { takeStrictJson } from "./strict-json.ts";
import { refuseUnkeepableUrl } from "./url-text.ts";

export interface HttpAppOptions {
  /** As /openapi.json shows them. */
  readonly title: string;
  readonly version: string;
  readonly log?: LogOptions;
  /** Whether requests are traced and measured: yes, unless said otherwise. */
  readonly telemetry?: boolean;
  /** How /openapi.json says that users prove who they are: by a token, unless said otherwise. */
  readonly usersBy?: "session" | "token";
  /** Whether a route must say who may call it. Those of a service must; those of its ops listener need not. */
  readonly rules?: boolean;
  /** The largest body of any route that does not set its own `bodyLimit`. */
  readonly bodyMaxBytes?: number;
  /** How long the headers, and the whole request, may take to arrive. */
  readonly headersTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** How long an idle connection is kept for its next request. */
  readonly keepAliveMs?: number;
  /** What connections may ask; see connections.ts for the defaults. */
  readonly bounds?: Partial<ConnectionBounds>;
  /** Which Host headers are answered: all, unless set. */
  readonly isOurHost?: IsOurHost;
  /** Whether /openapi.json is served: yes, unless set to false. */
  readonly openapi?: boolean;
}

export type HttpApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export async function buildHttpApp(options: HttpAppOptions): Promise<HttpApp> {
  const log = openLog(options.log ?? {});
  const app = Fastify({ ...settings(options), ...requestLogSettings(log) }).withTypeProvider<TypeBoxTypeProvider>();
  writeLog(app, log);
  trackConnections(app, options.bounds);
  knowCallers(app);
  answerWithProblems(app);
  takeStrictJson(app);
  holdRoutesToTheirSchemas(app);
  if (options.rules) requireRules(app);
  const tellOf = (options.telemetry ?? true) ? tellOfRequests(app) : undefined;
  const { isOurHost = () => true } = options;
  // One hook for all that happens at the door: each costs every request.
  app.addHook("onRequest", (request, reply, done) => {
    setAnswerHeaders(request, reply);
    tellOf?.(request, reply);
    if (!app.connections.began(reply.raw)) throw unavailable("the connection has closed; use another");
    if (!isOurHost(request.headers.host)) throw unknownHost("use a host name of this service");
    refuseUnknownRoute(app, request, reply);
    refuseUnkeepableUrl(request);
    done();
  });
  await describeRoutes(app, options);
  return app;
}

function settings(options: HttpAppOptions) {
  const { bodyMaxBytes = 64 * 1024, headersTimeoutMs = 5_000, requestTimeoutMs = 10_000 } = options;
  return {
    bodyLimit: bodyMaxBytes,
    requestTimeout: requestTimeoutMs,
    // Longer than the 60 s of common load balancers: they must be the ones to close, or they send into a closing socket.
    keepAliveTimeout: options.keepAliveMs ?? 72_000,
    http: {
      headersTimeout: headersTimeoutMs,
      // Node looks for late requests only this often; its own 30 s would make a bound of 5 s mean 35.
      connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
      maxHeaderSize: 16 * 1024,
    },
    // An idempotency key is the longest thing that a path holds.
    routerOptions: { maxParamLength: 255 },
    // While stopping, a request that was accepted is carried out; listen.ts says when that ends.
    return503OnClosing: false,
    genReqId: requestIdOf,
    // A URL that cannot be routed passes no hook.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      answerWithProblem(error, request, setAnswerHeaders(request, reply));
    },
    clientErrorHandler: answerClientError,
    ajv: { customOptions: strictSchemas },
  };
}

/** Nothing is converted, filled in or removed; every fault is found, with what it takes to explain it. */
const strictSchemas = {
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  allErrors: true, // Bounded by the size of the body.
  verbose: true,
  strict: true,
  allowUnionTypes: true,
} as const;
