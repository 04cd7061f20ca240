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

const bytesPerId = 24; // 16 for the trace, 8 for the span.
const pool = Buffer.alloc(bytesPerId * 256);
let used = pool.length;

/** 48 hexadecimal digits, drawn for 256 at a time. */
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
    traceId: traceId === INVALID_SPAN_CONTEXT.traceId ? digits.slice(0, 32) : traceId,
    spanId: digits.slice(32),
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

export const unrecordedTraces: TracerProvider = { getTracer: () => tracer };
