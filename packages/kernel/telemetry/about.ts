/** What an error is about, under the names that logs use: so that a log can be searched by event, trace or worker. */
import { logFields } from "./names.ts";

type LogField = (typeof logFields)[keyof typeof logFields];

export type About = { readonly [Field in LogField]?: string | number };

export interface ErrorAboutOptions extends ErrorOptions {
  readonly about: About;
}

/** For `onError`, where nobody waits for the answer and somebody reads the log. */
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

/** Which event it is and which trace it belongs to, as far as a row or a message says so. */
export function aboutEvent(of: object): About {
  const { eventId, eventType, headers }: EventLike = of;
  const traceId = headers?.trace_id;
  return {
    ...(typeof eventId === "string" && { [logFields.eventId]: eventId }),
    ...(typeof eventType === "string" && { [logFields.eventType]: eventType }),
    ...(typeof traceId === "string" && { [logFields.traceId]: traceId }),
  };
}
