/** Log fields of an error, so that a log can be searched by event, trace or worker. */
import { logFields } from "./names.ts";

type LogField = (typeof logFields)[keyof typeof logFields];

export type About = { readonly [Field in LogField]?: string | number };

export interface ErrorAboutOptions extends ErrorOptions {
  readonly about: About;
}

/** An error with log fields. The kernel passes it to `onError`. */
export class ErrorAbout extends Error {
  readonly about: About;

  constructor(message: string, { about, ...options }: ErrorAboutOptions) {
    super(message, options);
    this.about = about;
  }
}

interface EventLike {
  readonly eventId?: unknown;
  readonly eventType?: unknown;
  readonly headers?: { readonly trace_id?: unknown };
}

/** The event ID, event type and trace ID of a row or message, if it has them. */
export function aboutEvent(event: object): About {
  const { eventId, eventType, headers }: EventLike = event;
  const traceId = headers?.trace_id;
  return {
    ...(typeof eventId === "string" && { [logFields.eventId]: eventId }),
    ...(typeof eventType === "string" && { [logFields.eventType]: eventType }),
    ...(typeof traceId === "string" && { [logFields.traceId]: traceId }),
  };
}
