/**
 * The log.
 *
 * One line for every rejected and every failed request (problem-handler.ts), none for a successful one: metrics and traces cover
 * those, and the level "debug" adds a line for each. Never a body, a path, a query string or a header; secrets that reach a
 * line by mistake are hidden; no text of a caller can start a new line or control a terminal.
 */
import { writeSync } from "node:fs";
import { hostname } from "node:os";
import { inspect } from "node:util";
import { ContextError, type LogContext } from "@todoke/kernel/telemetry";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import { type Logger, pino } from "pino";
import { printable } from "./printable.ts";
import { formatTextLine } from "./text-log.ts";

export interface LogOptions {
  readonly level?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Fields of every line: the service and its version. */
  readonly fields?: LogContext;
  /** "text" is for people at a terminal; "json", the default, for everything that reads logs. */
  readonly format?: "json" | "text";
  /** Where lines are written; stdout by default. */
  readonly stream?: { write(line: string): void };
  /** Called with every line as JSON: secrets are hidden. It must not throw. */
  readonly onLine?: ((line: string) => void) | undefined;
}

const secrets = ["authorization", "cookie", "set-cookie", "password", "secret", "token", "idempotency-key"];

export function openLog({ level = "info", format = "json", fields, stream, onLine }: LogOptions): Logger {
  const settings = {
    level,
    base: { pid: process.pid, hostname: hostname(), ...fields },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: {
      paths: secrets.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.headers["${name}"]`]),
      censor: "(hidden)",
    },
    serializers: { req: requestForLog, err: errorForLog },
    hooks: {
      /** Every line passes here, so text of a caller is escaped in any field. */
      streamWrite(text: string): string {
        const line = printable(text);
        onLine?.(line);
        return format === "text" ? formatTextLine(line) : line;
      },
    },
  };
  return pino(settings, stream ?? openOutput());
}

/**
 * Standard output with one write for all lines of a turn of the event loop: a write per line costs more than the line. `flush`
 * writes at once. Lines that a turn has not finished are written when the process exits, but not if it is killed.
 *
 * No reader can stop the process: lines wait for a slow one, up to a limit, and are dropped if it has exited.
 */
function bufferOutput() {
  let text = "";
  let rest: Uint8Array = new Uint8Array();
  let isScheduled = false;
  let retry: NodeJS.Timeout | undefined;
  const flush = () => {
    isScheduled = false;
    clearTimeout(retry);
    rest = writeSome(Buffer.concat([rest, Buffer.from(text)]));
    text = "";
    if (rest.length > 0) retry = setTimeout(flush, slowReaderMs).unref();
  };
  process.once("exit", flush);
  return {
    write(line: string) {
      if (rest.length < waitingBytesMax) text += line;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
    flush(callback?: () => void) {
      flush();
      callback?.();
    },
  };
}

// A pipe holds 64 KB, which a reader that keeps up empties sooner.
const slowReaderMs = 10;
const waitingBytesMax = 4 * 1024 * 1024;

/** Returns what the reader does not take now. */
function writeSome(bytes: Uint8Array): Uint8Array {
  let written = 0;
  try {
    while (written < bytes.length) written += writeSync(1, bytes, written);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return bytes.subarray(written);
  }
  return new Uint8Array();
}

let sharedOutput: ReturnType<typeof bufferOutput> | undefined;

/** Standard output for lines of a log: one for all services of the process, so that their lines keep their order. */
export const openOutput = () => (sharedOutput ??= bufferOutput());

/** Logs an error that no caller awaits, with its event, trace or worker. */
export function logError(log: Pick<FastifyBaseLogger, "error">, error: unknown): void {
  const about = error instanceof ContextError ? error.context : {};
  log.error({ err: error, ...about }, error instanceof Error ? error.message : "failed");
}

/** The template of the route, never the path: URLs contain idempotency keys, user ids and login codes. */
function requestForLog({ method, routeOptions }: FastifyRequest) {
  return { method, route: routeOptions?.url };
}

const chainMax = 8;

/** The whole chain of causes. */
function errorForLog(error: unknown, depth = 0): { type: string; message: string; stack: string } {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: inspect(error, { depth: 1 }), stack: "" };
  }
  const { name, message, stack = "", cause, code } = error as Error & { code?: unknown };
  // A connection attempt to several addresses fails with an AggregateError: log each of them.
  const causes = error instanceof AggregateError ? error.errors.slice(0, chainMax) : [cause].filter(Boolean);
  return {
    type: name,
    message,
    ...(typeof code === "string" && { code }),
    stack,
    ...(causes.length > 0 && depth < chainMax && { causes: causes.map((one) => errorForLog(one, depth + 1)) }),
  };
}
