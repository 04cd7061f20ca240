/**
 * `app.log` and `request.log`: the second puts the request's id in every line, and costs only those that write one.
 *
 * Fastify, given a logger, makes a child of it for every request and listens for the end of every answer: a tenth of the
 * time of a small request, for nothing when all goes well. So it is not given the logger, only the means to make
 * `request.log`; the ends of answers are heard when the level asks for a line about each.
 */
import { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions, LogController } from "fastify";

type LogSettings = Pick<FastifyServerOptions, "logController" | "childLoggerFactory">;

export function requestLogSettings(log: FastifyBaseLogger): LogSettings {
  return {
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request_id" }),
    childLoggerFactory: (_none, bindings, options) => new RequestLog(log, bindings, options),
  };
}

export function writeLog(app: FastifyInstance, log: FastifyBaseLogger): void {
  app.log = log;
  if (log.level !== "debug" && log.level !== "trace") return;
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode: status, elapsedTime } = reply;
    request.log.debug({ req: request, status, ms: Math.round(elapsedTime) }, "answered");
  });
}

type Line = Parameters<FastifyBaseLogger["info"]>;
type Child = Parameters<FastifyBaseLogger["child"]>;

/** Becomes a logger at its first line. */
class RequestLog implements FastifyBaseLogger {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Child[0];
  readonly #options: Child[1];
  #made: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Child[0], options: Child[1]) {
    this.#parent = parent;
    this.#bindings = bindings;
    this.#options = options;
  }

  get #log(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#bindings, this.#options);
    return this.#made;
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
