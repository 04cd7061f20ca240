/**
 * Carries one trace from the request through outbox, bus and inbox as a W3C `traceparent` header. It is written and
 * read here rather than by a configured propagator, so that the thread does not break where a program has none.
 */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";

const tracer = trace.getTracer("@todoke/kernel");

type Headers = Readonly<Record<string, string>>;

/** Headers that let another process continue the current trace; empty outside any. */
export function traceHeaders(from: Context = context.active()): Record<string, string> {
  const span = trace.getSpanContext(from);
  if (!span || !isSpanContextValid(span)) return {};
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, "0");
  return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, trace_id: span.traceId };
}

// Longer ones are of no version that we read, however long they are.
const traceparentMax = 56;
const traceparent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The trace that the headers continue; none when they name none, or not in the one form that is well-formed. */
export function traceContextOf(headers: { readonly traceparent?: unknown }): Context {
  const [, traceId, spanId, flags] = traceparent.exec(String(headers.traceparent ?? "").slice(0, traceparentMax)) ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  });
}

export interface SpanOptions {
  readonly kind: "producer" | "consumer";
  readonly attributes?: Attributes;
  /** Headers of the message that this continues. */
  readonly parent: Headers;
}

export interface StartedSpan {
  /** For whoever continues from here. */
  readonly headers: Headers;
  /** Runs `work` inside the span, so that what it starts becomes its child. */
  run<T>(work: () => T): T;
  /** `why` marks it as failed. */
  end(why?: string): void;
}

const kinds = { producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER };

export function startSpan(name: string, { kind, attributes = {}, parent }: SpanOptions): StartedSpan {
  const from = traceContextOf(parent);
  const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, from);
  const within = trace.setSpan(from, span);
  return {
    headers: { ...parent, ...traceHeaders(within) },
    run: (work) => context.with(within, work),
    end(why) {
      if (why !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: why });
      span.end();
    },
  };
}

/**
 * Runs `work` in a span of its own, the child of the current one. The span ends with the work, failed if it rejects.
 * Outside a trace, and in one that nobody records, the work just runs.
 */
export function inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  const from = context.active();
  const parent = trace.getSpanContext(from);
  if (!parent || (parent.traceFlags & TraceFlags.SAMPLED) === 0) return work();
  const span = tracer.startSpan(name, { attributes }, from);
  return context.with(trace.setSpan(from, span), work).then(
    (value) => {
      span.end();
      return value;
    },
    (error) => {
      // The name of the error only: its message may hold what a caller sent.
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "unknown" });
      span.end();
      throw error;
    },
  );
}

/** Whether somebody records the trace that these headers continue; if not, more spans would be for nobody. */
export function isRecorded(headers: Headers): boolean {
  return (
    headers.traceparent !== undefined && (Number.parseInt(headers.traceparent.slice(-2), 16) & TraceFlags.SAMPLED) === 1
  );
}
