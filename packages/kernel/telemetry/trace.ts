/**
 * Propagates a trace from the request through outbox, bus and inbox as a W3C `traceparent` header. The kernel writes and
 * reads it itself, so that no propagator has to be configured.
 */
import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";

const tracer = trace.getTracer("@todoke/kernel");

type Headers = Readonly<Record<string, string>>;

const eventHeaders = createContextKey("todoke event headers");

/** Events that are written within the context carry these headers too. */
export const withEventHeaders = (within: Context, headers: Headers): Context => within.setValue(eventHeaders, headers);

/** Headers that let another process continue the current trace; empty outside a trace. */
export function traceHeaders(from: Context = context.active()): Record<string, string> {
  const span = trace.getSpanContext(from);
  if (!span || !isSpanContextValid(span)) return {};
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, "0");
  const more = from.getValue(eventHeaders) as Headers | undefined;
  return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, trace_id: span.traceId, ...more };
}

// A longer header is of another version.
const traceparentMax = 56;
const traceparent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses the trace context of the headers. Returns the root context if there is none or it is malformed. */
export function parseTraceContext(headers: { readonly traceparent?: unknown }): Context {
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
  /** Headers of the message that the span continues. */
  readonly parent: Headers;
}

export interface StartedSpan {
  /** Headers that continue this span. */
  readonly headers: Headers;
  /** Runs `work` inside the span, so that spans it starts are children. */
  run<T>(work: () => T): T;
  /** A reason marks the span as failed. */
  end(reason?: string): void;
}

const kinds = { producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER };

/** Starts a span that continues the trace of a message. */
export function startSpan(name: string, { kind, attributes = {}, parent }: SpanOptions): StartedSpan {
  const from = parseTraceContext(parent);
  const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, from);
  const within = trace.setSpan(from, span);
  return {
    headers: { ...parent, ...traceHeaders(within) },
    run: (work) => context.with(within, work),
    end(reason) {
      if (reason !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: reason });
      span.end();
    },
  };
}

/**
 * Runs `work` in a child span of the current span; the span is failed if the work rejects. Outside a sampled trace there is
 * no span.
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
      // Only the name: the message may contain what a caller sent.
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "unknown" });
      span.end();
      throw error;
    },
  );
}

/** Whether the trace of these headers is sampled. */
export function isSampled(headers: Headers): boolean {
  return (
    headers.traceparent !== undefined && (Number.parseInt(headers.traceparent.slice(-2), 16) & TraceFlags.SAMPLED) === 1
  );
}
