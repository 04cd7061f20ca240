/** Every metric that a process of a service has, named by OpenTelemetry's semantic conventions. */
import { gauge, type MetricCatalogue, processGauge } from "@todoke/kernel/telemetry";

export const metricCatalogue = {
  "db.client.connection.count": processGauge(
    "{connection}",
    "Connections of the pool to PostgreSQL, by state: idle or used",
    ["db.client.connection.pool.name", "db.client.connection.state"],
  ),
  "db.client.connection.pending_requests": processGauge(
    "{request}",
    "Requests that wait for a connection of the pool",
    ["db.client.connection.pool.name"],
  ),
  "nodejs.eventloop.delay.p99": gauge("s", "Event loop delay, 99th percentile of the last seconds"),
} satisfies MetricCatalogue;
