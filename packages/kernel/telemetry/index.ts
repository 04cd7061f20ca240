/**
 * The kernel's metrics, spans and log fields. It uses the OpenTelemetry API only, so a program without an SDK pays nothing.
 *
 * names.ts is the catalogue. docs/telemetry.md lists the same names; a test compares the two.
 */

export { type GaugeValue, gauge, type ObserveGaugesOptions, observeGauges } from "./gauges.ts";
export { ContextError, eventContext, type LogContext } from "./log-context.ts";
export { count, createMeters, type Metric, type MetricCatalogue, observeDuration, observeValue } from "./metrics.ts";
export { logFields, type MetricName, metricCatalogue, spanNames } from "./names.ts";
export { toResultLabel } from "./result.ts";
export { inSpan, isSampled, parseTraceContext, type StartedSpan, startSpan, traceHeaders } from "./trace.ts";
