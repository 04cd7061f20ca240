/** The parts of every service for staff: routes, the worker of batches, and the samples of the console. */
import type { MetricData } from "@opentelemetry/sdk-metrics";
import type { HttpApp } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { Runtime } from "./runtime.ts";
import {
  batchesTable,
  type ChangesSource,
  changesReader,
  type OverviewSource,
  overviewReader,
  type ReadChanges,
  revokeServiceKey,
  type StaffRouteDeps,
  staffRoutes,
  startBatchWorker,
  startSampler,
} from "./staff/index.ts";

/** Registers the routes, once. */
export type ServeStaff = (options: Pick<StaffRouteDeps, "authenticate" | "prefix" | "hide">) => StaffReads;

/** The reads of the routes, for the gateway, which has staff routes of its own too. */
export interface StaffReads extends Pick<StaffRouteDeps, "service" | "reads" | "deadLetters"> {
  readonly overview: ReturnType<typeof overviewReader>;
  readonly changes: ReadChanges;
  readonly revokeServiceKey: ReturnType<typeof revokeServiceKey>;
}

export interface StaffParts
  extends Pick<OverviewSource, "health" | "delays" | "needs">,
    Pick<ChangesSource, "find" | "changes"> {
  readonly app: HttpApp;
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
}

export function createServeStaff(runtime: Runtime, { app, reads, deadLetters, ...more }: StaffParts): ServeStaff {
  const { name: service, db, wakeups, topicOf } = runtime;
  const wake = (table: string) => wakeups.signal(topicOf(table));
  return (options) => {
    const overview = overviewReader({ service, reads, deadLetters, ...more });
    const changes = changesReader({ service, reads, deadLetters, ...more });
    const wakeBatches = () => wake(batchesTable);
    staffRoutes({ ...options, app, service, db, reads, deadLetters, onChanged: wake, wakeBatches }, overview);
    return {
      service,
      reads,
      deadLetters,
      overview,
      changes,
      revokeServiceKey: revokeServiceKey({ db, onChanged: wake }),
    };
  };
}

export interface StaffWork {
  readonly deadLetters: readonly DeadLetters[];
  /** All metrics of this process; undefined if it has none. */
  readonly collect: (() => Promise<readonly MetricData[]>) | undefined;
}

export function startStaffWork(runtime: Runtime, { deadLetters, collect }: StaffWork): void {
  const { name: service, db, wakeups, topicOf, onError, use } = runtime;
  const hasGauges = runtime.hasRole("maintenance");
  const onChanged = (table: string) => wakeups.signal(topicOf(table));
  if (hasGauges) use(startBatchWorker({ db, deadLetters, wakeups, topic: topicOf(batchesTable), onChanged, onError }));
  if (collect) use(startSampler({ service, db, deadLetters, hasGauges, collect, onError }));
}
