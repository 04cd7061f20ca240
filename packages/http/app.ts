/**
 * The Fastify app of a service: bodies are read strictly, every request is bounded in size and time, every rejection is
 * problem+json with all errors, every response has a request id, and /openapi.json describes the routes.
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
import { decorateCallers, requireRules } from "./callers.ts";
import { respondToClientError } from "./client-error.ts";
import { type ConnectionBounds, trackConnections } from "./connections.ts";
import type { IsOurHost } from "./hosts.ts";
import { type LogOptions, openLog } from "./log.ts";
import { describeRoutes } from "./openapi.ts";
import { rejectUnknownRoute, sendProblem, sendProblems } from "./problem-handler.ts";
import { unavailable, unknownHost } from "./problems.ts";
import { readRequestId } from "./request-id.ts";
import { requestLogSettings, writeLog } from "./request-log.ts";
import { recordRequests } from "./request-telemetry.ts";
import { setResponseHeaders } from "./response-headers.ts";
import { enforceRouteSchemas } from "./route-schemas.ts";
import { useStrictJson } from "./strict-json.ts";
import { rejectUnstorableUrl } from "./url-checks.ts";

export interface HttpAppOptions {
  /** As /openapi.json shows them. */
  readonly title: string;
  readonly version: string;
  /** The service in metrics and spans of requests: one process may run several. */
  readonly service?: string;
  readonly log?: LogOptions;
  /** Whether requests are traced and measured; true by default. */
  readonly telemetry?: boolean;
  /** How users authenticate, for /openapi.json; by a token by default. */
  readonly userAuth?: "session" | "token";
  /** Whether every route needs an access rule. Routes of a service do; those of its ops listener do not. */
  readonly rules?: boolean;
  /** The largest body of a route without a `bodyLimit` of its own. */
  readonly bodyMaxBytes?: number;
  /** How long the headers, and the whole request, may take to arrive. */
  readonly headersTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** How long an idle connection stays open. */
  readonly keepAliveMs?: number;
  /** Bounds of connections; connections.ts has the defaults. */
  readonly bounds?: Partial<ConnectionBounds>;
  /** Which Host headers are accepted; all by default. */
  readonly isOurHost?: IsOurHost;
  /** Whether the API document is served; true by default. */
  readonly openapi?: boolean;
  /** Where it is served; `/openapi.json` by default. */
  readonly openapiPath?: `/${string}`;
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
  decorateCallers(app);
  sendProblems(app);
  useStrictJson(app);
  enforceRouteSchemas(app);
  if (options.rules) requireRules(app);
  const record = (options.telemetry ?? true) ? recordRequests(app, options.service ?? "") : undefined;
  const { isOurHost = () => true } = options;
  // One hook for everything, because each hook costs time on every request.
  app.addHook("onRequest", (request, reply, done) => {
    // Before the headers, because a request that begins a trace gets its id from it.
    record?.(request, reply);
    setResponseHeaders(request, reply);
    if (!app.connections.began(reply.raw)) throw unavailable("the connection is closing; use another");
    if (!isOurHost(request.headers.host)) throw unknownHost("use a host name of this service");
    rejectUnknownRoute(app, request, reply);
    rejectUnstorableUrl(request);
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
    // Longer than the 60 s of common load balancers: if the service closed first, they could send into a closing socket.
    keepAliveTimeout: options.keepAliveMs ?? 72_000,
    http: {
      headersTimeout: headersTimeoutMs,
      // Node checks for late requests at this interval; its default of 30 s would turn 5 s into 35.
      connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
      maxHeaderSize: 16 * 1024,
    },
    // An idempotency key is the longest value in a path.
    routerOptions: { maxParamLength: 255 },
    // An accepted request is executed even while the process stops; @todoke/service bounds that time.
    return503OnClosing: false,
    genReqId: readRequestId,
    // No hook runs for a URL that cannot be routed.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
      sendProblem(error, request, setResponseHeaders(request, reply));
    },
    clientErrorHandler: respondToClientError,
    ajv: { customOptions: strictSchemas },
  };
}

/** Nothing is converted, filled in or removed; all errors are found, with the data to explain them. */
const strictSchemas = {
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  allErrors: true, // Bounded by the size of the body.
  verbose: true,
  strict: true,
  allowUnionTypes: true,
} as const;
