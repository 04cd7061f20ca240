/**
 * What the log says of requests, and what it never says.
 *
 * One line for every refusal and every failure (problem-handler.ts writes them), none for what went well: metrics and
 * traces tell that, and the level "debug" adds a line for each. Never a body, a path, a query string or a header; secrets that
 * reach a line by mistake are blanked; no text of a caller can start a new line or command a terminal.
 */
import { inspect } from "node:util";
import { ErrorAbout } from "@todoke/kernel/telemetry";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import { type Logger, pino } from "pino";
import { printable } from "./printable.ts";

export interface LogOptions {
  readonly level?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Where lines go: stdout unless said otherwise. */
  readonly stream?: { write(line: string): void };
}

const secrets = ["authorization", "cookie", "set-cookie", "password", "secret", "token", "idempotency-key"];

export function openLog({ level = "info", stream }: LogOptions): Logger {
  const settings = {
    level,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: {
      paths: secrets.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.headers["${name}"]`]),
      censor: "(hidden)",
    },
    serializers: { req: requestForLog, err: errorForLog },
    // Here, where every line of everybody passes: whatever field holds a caller's text, it stays text.
    hooks: { streamWrite: printable },
  };
  return stream ? pino(settings, stream) : pino(settings);
}

/** A failure where nobody waits for an answer, with the event, trace or worker that it is about. */
export function logError(log: Pick<FastifyBaseLogger, "error">, error: unknown): void {
  const about = error instanceof ErrorAbout ? error.about : {};
  log.error({ err: error, ...about }, error instanceof Error ? error.message : "failed");
}

/** The template of the route and never the path: idempotency keys, user ids and log-in codes travel in URLs. */
function requestForLog({ method, routeOptions }: FastifyRequest) {
  return { method, route: routeOptions?.url };
}

const chainMax = 8;

/** The whole chain of causes: what was being done, and what went wrong below it. */
function errorForLog(error: unknown, depth = 0): { type: string; message: string; stack: string } {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: inspect(error, { depth: 1 }), stack: "" };
  }
  const { name, message, stack = "", cause, code } = error as Error & { code?: unknown };
  // One address of several that could not be reached says little; a failed try of each comes as an AggregateError.
  const causes = error instanceof AggregateError ? error.errors.slice(0, chainMax) : [cause].filter(Boolean);
  return {
    type: name,
    message,
    ...(typeof code === "string" && { code }),
    stack,
    ...(causes.length > 0 && depth < chainMax && { causes: causes.map((one) => errorForLog(one, depth + 1)) }),
  };
}
