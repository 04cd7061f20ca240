/**
 * The settings of a worker: ENTITLEMENT_RELAY_LEASE_MS for one worker of a service, ENTITLEMENT_LEASE_MS for all of its
 * workers that have none of their own.
 */
import type { Env } from "@todoke/http";
import { defaultWorkerSettings, type WorkerSettings } from "@todoke/kernel/worker";
import { envName, integerReader } from "./settings.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** The batch is optional, because every worker has a default that suits it. */
export type WorkerOverrides = Omit<WorkerSettings, "batchMax" | "concurrency" | "drainMs"> &
  Partial<Pick<WorkerSettings, "batchMax" | "concurrency">>;

export interface WorkerName {
  readonly service: string;
  /** As in the variables: "relay". */
  readonly worker: string;
}

export function readWorkerSettings({ service, worker }: WorkerName, env: Env, errors: string[]): WorkerOverrides {
  const read = integerReader(env, errors);
  const integer = (what: string, byDefault: number, bounds: readonly [number, number]) =>
    read([envName(service, `${worker}_${what}`), envName(service, what)], byDefault, bounds);
  const { leaseMs, pollMs, attemptsMax, backoff } = defaultWorkerSettings;
  const batchMax = integer("BATCH_MAX", 0, [0, 10_000]);
  return {
    ...(batchMax > 0 && { batchMax, concurrency: 2 * batchMax }),
    leaseMs: integer("LEASE_MS", leaseMs, [1_000, dayMs]),
    pollMs: integer("POLL_MS", pollMs, [10, 60_000]),
    attemptsMax: integer("ATTEMPTS_MAX", attemptsMax, [1, 100]),
    backoff: {
      baseMs: integer("BACKOFF_BASE_MS", backoff.baseMs, [1, 3_600_000]),
      capMs: integer("BACKOFF_CAP_MS", backoff.capMs, [1, dayMs]),
    },
  };
}
