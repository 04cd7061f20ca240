import { ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { expect, test } from "vitest";
import { unrecordedTraces } from "./trace-ids.ts";

const tracer = unrecordedTraces.getTracer("test");

test("every trace has its own id and is marked as not recorded", () => {
  const spans = Array.from({ length: 1_000 }, () => tracer.startSpan("x", {}, ROOT_CONTEXT));
  expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1_000);
  expect(new Set(spans.map((span) => span.spanContext().spanId)).size).toBe(1_000);
  const headers = traceHeaders(trace.setSpan(ROOT_CONTEXT, spans[0] as (typeof spans)[0]));
  expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
});

test("a span is in the trace of its parent", () => {
  const parent = tracer.startSpan("x", {}, ROOT_CONTEXT);
  const within = trace.setSpan(ROOT_CONTEXT, parent);
  expect(tracer.startSpan("y", {}, within).spanContext().traceId).toBe(parent.spanContext().traceId);
  tracer.startActiveSpan("z", {}, within, (span) => {
    expect(span.spanContext().traceId).toBe(parent.spanContext().traceId);
    expect(span.spanContext().spanId).not.toBe(parent.spanContext().spanId);
  });
});
