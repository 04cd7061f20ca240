/** What only this service takes from the environment. */
import { type Env, integerReader } from "@todoke/service";

export interface Settings {
  /** How often the scheduler looks for what is due, besides being woken for it. */
  readonly schedulerMs: number;
  /** How many reservations may be PROCESSING at once. */
  readonly inFlightMax: number;
}

export function readSettings(env: Env, faults: string[]): Settings {
  const whole = integerReader(env, faults);
  return {
    schedulerMs: whole("POINTS_SCHEDULER_SECONDS", 10, [1, 3_600]) * 1_000,
    inFlightMax: whole("POINTS_IN_FLIGHT_MAX", 20_000, [1, 1_000_000]),
  };
}
