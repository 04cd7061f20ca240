/** Reads settings from the environment. An error is a sentence that is pushed, never thrown, so that all are reported at once. */
import type { Env } from "@todoke/http";
import { inboxForgetsTooSoon } from "@todoke/kernel/retention";

/** The variable of one service: GATEWAY_BFF_PORT. */
export const envName = (service: string, what: string): string =>
  `${service}_${what}`.toUpperCase().replaceAll("-", "_");

/** Reads integers within bounds, each with its default. */
export const integerReader =
  (env: Env, errors: string[]) =>
  (name: string, byDefault: number, [min, max]: readonly [number, number]): number => {
    const number = Number(env[name] || byDefault);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    errors.push(`${name} is ${JSON.stringify(env[name])} and should be a whole number from ${min} to ${max}`);
    return byDefault;
  };

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * How long the inbox of a service remembers processed events: <NAME>_PROCESSED_KEEP_DAYS. It must outlast every redelivery:
 * the buses keep a message for EVENT_BUS_KEEP_DAYS, and the outbox, from which it can be published again, for 7 days.
 */
export function readProcessedKeepMs(service: string, env: Env, errors: string[]): number {
  const days = (name: string, byDefault: number) => integerReader(env, errors)(name, byDefault, [1, 3_650]) * dayMs;
  const name = envName(service, "PROCESSED_KEEP_DAYS");
  const inboxMs = days(name, 14);
  const brokerMs = days("EVENT_BUS_KEEP_DAYS", 7);
  const error = inboxForgetsTooSoon({ inboxMs, brokerMs, redriveMs: days("EVENT_REDRIVE_DAYS", 7) });
  if (error) errors.push(`${name} is too small: ${error}`);
  return inboxMs;
}
