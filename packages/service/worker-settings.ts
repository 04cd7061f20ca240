/** What an operator may say of the workers of a service: ENTITLEMENT_LEASE_MS, NOTIFICATION_BATCH_MAX and their kin. */

import type { Env } from "@todoke/http";
import { defaultSettings, type WorkerSettings } from "@todoke/kernel/worker";
import { variableOf, wholeNumbers } from "./settings.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** A batch only where one is said: each worker has one that suits it. */
export type WorkerChoices = Omit<WorkerSettings, "batchMax" | "concurrency" | "drainMs"> &
  Partial<Pick<WorkerSettings, "batchMax" | "concurrency">>;

export function readWorkerSettings(service: string, env: Env, faults: string[]): WorkerChoices {
  const whole = wholeNumbers(env, faults);
  const of = (what: string) => variableOf(service, what);
  const { leaseMs, pollMs, attemptsMax, backoff } = defaultSettings;
  const batchMax = whole(of("BATCH_MAX"), 0, [0, 10_000]);
  return {
    ...(batchMax > 0 && { batchMax, concurrency: 2 * batchMax }),
    leaseMs: whole(of("LEASE_MS"), leaseMs, [1_000, dayMs]),
    pollMs: whole(of("POLL_MS"), pollMs, [10, 60_000]),
    attemptsMax: whole(of("ATTEMPTS_MAX"), attemptsMax, [1, 100]),
    backoff: {
      baseMs: whole(of("BACKOFF_BASE_MS"), backoff.baseMs, [1, 3_600_000]),
      capMs: whole(of("BACKOFF_CAP_MS"), backoff.capMs, [1, dayMs]),
    },
  };
}
