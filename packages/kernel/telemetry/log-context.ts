/** Log fields of an error, so that a log can be searched by event, trace or worker. */
import { trace } from "@opentelemetry/api";
import { logFields } from "./names.ts";
import { parseTraceContext } from "./trace.ts";

type LogField = (typeof logFields)[keyof typeof logFields];

export type LogContext = { readonly [Field in LogField]?: string | number };

export interface ContextErrorOptions extends ErrorOptions {
  readonly context: LogContext;
}

/** An error with log fields. The kernel passes it to `onError`. */
export class ContextError extends Error {
  readonly context: LogContext;

  constructor(message: string, { context, ...options }: ContextErrorOptions) {
    super(message, options);
    this.context = context;
  }
}

interface EventLike {
  readonly eventId?: unknown;
  readonly eventType?: unknown;
  readonly headers?: { readonly trace_id?: unknown; readonly traceparent?: unknown };
}

/** The event ID, event type and trace of a row or message, if it has them. The span is the one that passed the event on. */
export function eventContext(event: object): LogContext {
  const { eventId, eventType, headers }: EventLike = event;
  const span = trace.getSpanContext(parseTraceContext(headers ?? {}));
  const traceId = span?.traceId ?? headers?.trace_id;
  return {
    ...(typeof eventId === "string" && { [logFields.eventId]: eventId }),
    ...(typeof eventType === "string" && { [logFields.eventType]: eventType }),
    ...(typeof traceId === "string" && { [logFields.traceId]: traceId }),
    ...(span && { [logFields.spanId]: span.spanId }),
  };
}
