/**
 * One span and one measurement for every request: by method, route template and status, never by what the caller wrote.
 *
 * A well-formed `traceparent` is continued, anything else begins a new trace. What the handler does happens inside the
 * span, so that the events it writes carry the trace on.
 */
import type { ServerResponse } from "node:http";
import {
  type Attributes,
  type Context,
  context,
  INVALID_TRACEID,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { metersOf, traceContextOf } from "@todoke/kernel/telemetry";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { metricCatalogue } from "./names.ts";
import { RequestLog } from "./request-log.ts";

const { observeDuration } = metersOf("@todoke/http", metricCatalogue);
const tracer = trace.getTracer("@todoke/http");

export type TellOfRequest = (request: FastifyRequest, reply: FastifyReply) => void;

/** What is known of a request while it runs. */
interface Telling {
  readonly request: FastifyRequest;
  readonly sinceMs: number;
  readonly span: Span;
  readonly within: Context;
  /** The template of the route, once the request has come that far. */
  route: string | undefined;
}

const telling = Symbol("telling");
type Told = ServerResponse & { [telling]?: Telling };

/** Whoever takes a request has to call what this returns: a hook of our own would cost every request one more. */
export function tellOfRequests(app: FastifyInstance): TellOfRequest {
  // A route knows its own template; to ask the request for it costs more than the rest of this file.
  app.addHook("onRoute", (route) => {
    route.preValidation = [enter(route.url), ...[route.preValidation ?? []].flat()];
  });
  return (request, reply) => {
    const from = traceContextOf(request.headers as { traceparent?: unknown });
    const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER }, from);
    const response: Told = reply.raw;
    response[telling] = {
      request,
      sinceMs: performance.now(),
      span,
      within: trace.setSpan(from, span),
      route: undefined,
    };
    if (request.log instanceof RequestLog) request.log.traceId = traceIdOf(span);
    response.on("close", closed);
  };
}

/** Here, for reading the body has ended whatever was entered before it. */
function enter(route: string) {
  return (_request: FastifyRequest, { raw }: FastifyReply, done: () => void): void => {
    const told = (raw as Told)[telling];
    if (told) {
      told.route = route;
      context.with(told.within, done);
    } else done();
  };
}

function closed(this: Told): void {
  const { request, sinceMs, span, route } = this[telling] as Telling;
  const attributes = {
    "http.request.method": knownMethods.has(request.method) ? request.method : "_OTHER",
    // No route at all: one name for whatever strangers try.
    "http.route": route ?? (request.is404 ? "" : (request.routeOptions.url ?? "")),
    "http.response.status_code": this.writableEnded ? this.statusCode : hungUp,
  };
  observeDuration("http.server.request.duration", sinceMs, attributes);
  if (span.isRecording()) describe(span, attributes);
  span.end();
}

// As nginx has it: nobody was there any more to be answered.
const hungUp = 499;

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
  readonly "http.request.method": string;
  readonly "http.route": string;
  readonly "http.response.status_code": number;
}

function describe(span: Span, attributes: RequestAttributes): void {
  span.updateName(`${attributes["http.request.method"]} ${attributes["http.route"]}`.trimEnd());
  span.setAttributes(attributes);
  // A refusal is the caller's fault, and no error of ours.
  if (attributes["http.response.status_code"] >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** None where no SDK makes ids. */
function traceIdOf(span: Span): string | undefined {
  const { traceId } = span.spanContext();
  return traceId === INVALID_TRACEID ? undefined : traceId;
}
