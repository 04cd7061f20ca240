/**
 * One span and one measurement per request: by service, method, route template and status, never by text of the caller.
 *
 * A well-formed `traceparent` is continued; anything else begins a new trace. The handler runs inside the span, so that the
 * events it writes carry the trace.
 */
import type { ServerResponse } from "node:http";
import { type Attributes, type Context, context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { createMeters, parseTraceContext, withEventHeaders } from "@todoke/kernel/telemetry";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { metricCatalogue } from "./names.ts";
import { RequestLog } from "./request-log.ts";

const { observeDuration } = createMeters("@todoke/http", metricCatalogue);
const tracer = trace.getTracer("@todoke/http");

export type RecordRequest = (request: FastifyRequest, reply: FastifyReply) => void;

/** The state of a request while it runs. */
interface RequestRecord {
  readonly request: FastifyRequest;
  readonly service: string;
  readonly sinceMs: number;
  readonly span: Span;
  readonly within: Context;
  /** The template of the route, once it is known. */
  route: string | undefined;
}

const record = Symbol("request record");
type RecordedResponse = ServerResponse & { [record]?: RequestRecord };

/** The request hook of the app must call the result: a separate hook would cost time on every request. */
export function recordRequests(app: FastifyInstance, service: string): RecordRequest {
  // The route knows its template; reading it from the request costs more than the rest of this file.
  app.addHook("onRoute", (route) => {
    route.preValidation = [enter(route.url), ...[route.preValidation ?? []].flat()];
  });
  return (request, reply) => {
    const from = parseTraceContext(request.headers as { traceparent?: unknown });
    const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER }, from);
    const within = withRequestId(request, trace.setSpan(from, span));
    const response: RecordedResponse = reply.raw;
    response[record] = {
      request,
      service,
      sinceMs: performance.now(),
      span,
      within,
      route: undefined,
    };
    if (request.log instanceof RequestLog) request.log.span = span;
    response.on("close", closed);
  };
}

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const traceOfOurs = /^(.{8})(.{4})(7.{3})([89ab].{3})(.{12})$/;

/**
 * The id of a request that begins a trace has the digits of the trace, which its events carry: they are found by either, and none has
 * to store both. Under another id (the caller's own, or in a trace of the caller) the events carry the id too.
 */
function withRequestId(request: FastifyRequest, within: Context): Context {
  const parts = traceOfOurs.exec(trace.getSpanContext(within)?.traceId ?? "")?.slice(1);
  const ofTrace = parts?.join("-");
  if (request.id === ofTrace) return within;
  // Events are found by the time in the id, so another one would not help.
  const hasTime = uuidV7.test(request.id);
  const isFree = request.headers["x-request-id"] !== request.id && request.headers.traceparent === undefined;
  if (ofTrace === undefined || !isFree)
    return hasTime ? withEventHeaders(within, { request_id: request.id.toLowerCase() }) : within;
  request.id = ofTrace;
  if (request.log instanceof RequestLog) request.log.requestId = ofTrace;
  return within;
}

/** At this point, because reading the body ends any context entered before it. */
function enter(route: string) {
  return (_request: FastifyRequest, { raw }: FastifyReply, done: () => void): void => {
    const recorded = (raw as RecordedResponse)[record];
    if (recorded) {
      recorded.route = route;
      context.with(recorded.within, done);
    } else done();
  };
}

function closed(this: RecordedResponse): void {
  const { request, service, sinceMs, span, route } = this[record] as RequestRecord;
  const attributes = {
    service,
    "http.request.method": knownMethods.has(request.method) ? request.method : "_OTHER",
    // One name for all requests without a route.
    "http.route": route ?? (request.is404 ? "" : (request.routeOptions.url ?? "")),
    "http.response.status_code": this.writableEnded ? this.statusCode : clientClosedRequest,
  };
  observeDuration("http.server.request.duration", sinceMs, attributes);
  if (span.isRecording()) describe(span, attributes);
  span.end();
}

// As in nginx: the client closed the connection before the response.
const clientClosedRequest = 499;

const knownMethods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "QUERY",
]);

interface RequestAttributes extends Attributes {
  readonly service: string;
  readonly "http.request.method": string;
  readonly "http.route": string;
  readonly "http.response.status_code": number;
}

function describe(span: Span, attributes: RequestAttributes): void {
  span.updateName(`${attributes["http.request.method"]} ${attributes["http.route"]}`.trimEnd());
  span.setAttributes(attributes);
  // A 4xx is not an error of the service.
  if (attributes["http.response.status_code"] >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}
