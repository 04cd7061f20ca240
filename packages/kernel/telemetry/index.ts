/**
 * What the kernel tells of itself: through the OpenTelemetry API only, so that a program without an SDK pays nothing.
 *
 * names.ts is the catalogue of every span, metric and log field; docs/telemetry.md lists the same, checked by a test.
 */

export { count, observeDuration, observeValue } from "./metrics.ts";
export { logFields, type MetricName, metricCatalogue, spanNames } from "./names.ts";
export { type StartedSpan, startSpan, traceHeaders } from "./trace.ts";
