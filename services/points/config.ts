/** Settings of this service only. */
import { type Env, integerReader } from "@todoke/service";

export interface Settings {
  /** The longest time between two runs of the scheduler. */
  readonly schedulerMs: number;
  /** How many reservations may be PROCESSING at once. */
  readonly inFlightMax: number;
}

export function readSettings(env: Env, errors: string[]): Settings {
  const integer = integerReader(env, errors);
  return {
    schedulerMs: integer("POINTS_SCHEDULER_SECONDS", 10, [1, 3_600]) * 1_000,
    inFlightMax: integer("POINTS_IN_FLIGHT_MAX", 20_000, [1, 1_000_000]),
  };
}
