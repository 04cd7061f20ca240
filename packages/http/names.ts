/** Every metric of the edge, named by OpenTelemetry's semantic conventions. */
import { histogram, type MetricCatalogue } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "http.server.request.duration": histogram(
    "s",
    "From reading the headers to sending the response; 499 if the client closed the connection",
    ["service", "http.request.method", "http.route", "http.response.status_code"],
  ),
} satisfies MetricCatalogue;
