/**
 * What the kernel tells of itself: through the OpenTelemetry API only, so that a program without an SDK pays nothing.
 *
 * names.ts is the catalogue of every span, metric and log field; docs/telemetry.md lists the same, checked by a test.
 */

export { type About, aboutEvent, ErrorAbout } from "./about.ts";
export { count, type Metric, type MetricCatalogue, metersOf, observeDuration, observeValue } from "./metrics.ts";
export { logFields, type MetricName, metricCatalogue, spanNames } from "./names.ts";
export { resultOf } from "./result.ts";
export { inSpan, isRecorded, type StartedSpan, startSpan, traceContextOf, traceHeaders } from "./trace.ts";
export { type Reading, type WatchOptions, watch } from "./watch.ts";
