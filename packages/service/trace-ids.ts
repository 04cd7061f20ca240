/**
 * Traces that are not recorded: every request has a trace id, which logs and events carry, and nothing else.
 *
 * An SDK whose sampler rejects every span does the same at several times the cost.
 */
import { randomFillSync } from "node:crypto";
import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  type Span,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";

/**
 * A trace id has the form of a UUID v7: it begins with its time in milliseconds, so the events of a trace are found by the range of
 * their ids, and no event needs an index entry for it. The request that begins the trace has the same digits as its id
 * (packages/http/request-telemetry.ts). The other 74 bits are random.
 */
const newTraceId = (digits: string): string => {
  const variant = "89ab"[Number.parseInt(digits[3] ?? "0", 16) & 3];
  return `${Date.now().toString(16).padStart(12, "0")}7${digits.slice(0, 3)}${variant}${digits.slice(4, 19)}`;
};

const bytesPerId = 18; // 10 for the trace, 8 for the span.
const pool = Buffer.alloc(bytesPerId * 256);
let used = pool.length;

/** 36 hexadecimal digits, drawn for 256 at a time. */
function randomDigits(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytesPerId;
  return pool.toString("hex", used - bytesPerId, used);
}

/** In the trace of its parent, or in a new one. */
function unrecordedSpan(parent: Context): Span {
  const digits = randomDigits();
  const { traceId } = trace.getSpanContext(parent) ?? INVALID_SPAN_CONTEXT;
  return trace.wrapSpanContext({
    traceId: traceId === INVALID_SPAN_CONTEXT.traceId ? newTraceId(digits) : traceId,
    spanId: digits.slice(20),
    traceFlags: 0,
  });
}

const tracer: Tracer = {
  startSpan: (_name, _options, parent = context.active()) => unrecordedSpan(parent),
  startActiveSpan(_name: string, ...rest: unknown[]) {
    const work = rest.at(-1) as (span: Span) => unknown;
    const parent = rest.length > 2 ? (rest[1] as Context) : context.active();
    const span = unrecordedSpan(parent);
    return context.with(trace.setSpan(parent, span), work, undefined, span) as never;
  },
};

/** The ids of recorded traces. */
export const traceIds = {
  generateTraceId: () => newTraceId(randomDigits()),
  generateSpanId: () => randomDigits().slice(20),
};

export const unrecordedTraces: TracerProvider = { getTracer: () => tracer };
