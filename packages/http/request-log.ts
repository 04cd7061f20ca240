/**
 * `app.log` and `request.log`. The second adds the request's id, its trace and the hash of its idempotency key to every line,
 * and costs nothing until the first line.
 *
 * Fastify with a logger makes a child logger for every request and listens for the end of every response: a tenth of the time of
 * a small request, wasted if nothing is logged. So Fastify gets only the means to make `request.log`; responses are observed
 * only if the level asks for a line about each.
 */
import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { INVALID_SPAN_CONTEXT, isSpanContextValid, type Span } from "@opentelemetry/api";
import { logFields } from "@todoke/kernel/telemetry";
import { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions, LogController } from "fastify";
import { wellFormedKey } from "./idempotency.ts";

type LogSettings = Pick<FastifyServerOptions, "logController" | "childLoggerFactory">;

export function requestLogSettings(log: FastifyBaseLogger): LogSettings {
  return {
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: logFields.requestId }),
    childLoggerFactory: (_none, bindings, options, raw) => new RequestLog(log, bindings, { options, raw }),
  };
}

export function writeLog(app: FastifyInstance, log: FastifyBaseLogger): void {
  app.log = log;
  if (log.level !== "debug" && log.level !== "trace") return;
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode: status, elapsedTime } = reply;
    request.log.debug({ req: request, status, ms: Math.round(elapsedTime) }, "responded");
  });
}

type Line = Parameters<FastifyBaseLogger["info"]>;
type Child = Parameters<FastifyBaseLogger["child"]>;

interface OfRequest {
  readonly options: Child[1];
  readonly raw: IncomingMessage;
}

/** Makes the logger at the first line. */
export class RequestLog implements FastifyBaseLogger {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Child[0];
  readonly #of: OfRequest;
  #made: FastifyBaseLogger | undefined;
  /** Set where requests are traced. */
  span: Span | undefined;
  /** Instead of the one that it was made with. */
  requestId: string | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Child[0], of: OfRequest) {
    this.#parent = parent;
    this.#bindings = bindings;
    this.#of = of;
  }

  get #log(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#allBindings(), this.#of.options);
    return this.#made;
  }

  #allBindings(): Child[0] {
    const key = wellFormedKey(String(this.#of.raw.headers["idempotency-key"] ?? ""));
    const span = this.span?.spanContext() ?? INVALID_SPAN_CONTEXT;
    return {
      ...this.#bindings,
      ...(this.requestId !== undefined && { [logFields.requestId]: this.requestId }),
      ...(isSpanContextValid(span) && { [logFields.traceId]: span.traceId, [logFields.spanId]: span.spanId }),
      ...(key !== undefined && { [logFields.idempotencyKey]: hash("sha256", key, "hex") }),
    };
  }

  get level(): string {
    return this.#log.level;
  }
  fatal(...line: Line): void {
    this.#log.fatal(...line);
  }
  error(...line: Line): void {
    this.#log.error(...line);
  }
  warn(...line: Line): void {
    this.#log.warn(...line);
  }
  info(...line: Line): void {
    this.#log.info(...line);
  }
  debug(...line: Line): void {
    this.#log.debug(...line);
  }
  trace(...line: Line): void {
    this.#log.trace(...line);
  }
  silent(): void {}

  child(...child: Child): FastifyBaseLogger {
    return this.#log.child(...child);
  }
}
