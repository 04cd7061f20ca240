/** Every metric of the edge, named by OpenTelemetry's semantic conventions. */
import type { MetricCatalogue } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "http.server.request.duration": {
    kind: "histogram",
    unit: "s",
    description: "From reading the headers to sending the response; 499 if the client closed the connection",
    attributes: ["http.request.method", "http.route", "http.response.status_code"],
  },
} as const satisfies MetricCatalogue;
