/** Log fields of an error, so that a log can be searched by event, trace or worker. */
import { logFields } from "./names.ts";

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
  readonly headers?: { readonly trace_id?: unknown };
}

/** The event ID, event type and trace ID of a row or message, if it has them. */
export function eventContext(event: object): LogContext {
  const { eventId, eventType, headers }: EventLike = event;
  const traceId = headers?.trace_id;
  return {
    ...(typeof eventId === "string" && { [logFields.eventId]: eventId }),
    ...(typeof eventType === "string" && { [logFields.eventType]: eventType }),
    ...(typeof traceId === "string" && { [logFields.traceId]: traceId }),
  };
}
