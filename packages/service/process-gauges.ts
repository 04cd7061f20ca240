/** Gauges of every process: its connection pool and its event loop delay. */
import type { Db } from "@todoke/kernel/db";
import { createMeters } from "@todoke/kernel/telemetry";
import { metricCatalogue } from "./names.ts";

const { observeGauges } = createMeters("@todoke/service", metricCatalogue);

export interface ProcessGauges {
  /** The name of the pool: the service's. */
  readonly service: string;
  readonly db: Pick<Db, "totalCount" | "idleCount" | "waitingCount">;
  readonly loopDelayMs: () => number;
}

export function watchProcess({ service, db, loopDelayMs }: ProcessGauges): AsyncDisposable {
  const pool = { "db.client.connection.pool.name": service };
  const connections = (state: "idle" | "used", value: number) =>
    ({
      name: "db.client.connection.count",
      value,
      attributes: { ...pool, "db.client.connection.state": state },
    }) as const;
  return observeGauges({
    gauges: ["db.client.connection.count", "db.client.connection.pending_requests", "nodejs.eventloop.delay.p99"],
    intervalMs: 0, // Reading these costs nothing.
    read: () => [
      connections("idle", db.idleCount),
      connections("used", db.totalCount - db.idleCount),
      { name: "db.client.connection.pending_requests", value: db.waitingCount, attributes: pool },
      { name: "nodejs.eventloop.delay.p99", value: loopDelayMs() / 1_000 },
    ],
  });
}
