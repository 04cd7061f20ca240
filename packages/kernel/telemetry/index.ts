/**
 * The kernel's metrics, spans and log fields. It uses the OpenTelemetry API only, so a program without an SDK pays nothing.
 *
 * names.ts is the catalogue. docs/telemetry.md lists the same names; a test compares the two.
 */

export { type Reading, type WatchOptions, watch } from "./gauges.ts";
export { type About, aboutEvent, ErrorAbout } from "./log-context.ts";
export { count, type Metric, type MetricCatalogue, metersOf, observeDuration, observeValue } from "./metrics.ts";
export { logFields, type MetricName, metricCatalogue, spanNames } from "./names.ts";
export { resultOf } from "./result.ts";
export { inSpan, isRecorded, type StartedSpan, startSpan, traceContextOf, traceHeaders } from "./trace.ts";
