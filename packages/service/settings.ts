/** Settings from the environment. A fault is a sentence that is pushed, never thrown: all of them are told at once. */
import type { Env } from "@todoke/http";
import { inboxForgetsTooSoon } from "@todoke/kernel/retention";

/** The variable of one service: GATEWAY_BFF_PORT. */
export const variableOf = (service: string, what: string): string =>
  `${service.toUpperCase().replaceAll("-", "_")}_${what}`;

/** Reads whole numbers within bounds, each with what it is where nothing is said. */
export const wholeNumbers =
  (env: Env, faults: string[]) =>
  (name: string, usual: number, [min, max]: readonly [number, number]): number => {
    const number = Number(env[name] || usual);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    faults.push(`${name} is ${JSON.stringify(env[name])} and should be a whole number from ${min} to ${max}`);
    return usual;
  };

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * How long a service with an inbox remembers which events it has seen: <NAME>_PROCESSED_KEEP_DAYS. That must be longer than
 * an event can come again: the buses keep a message for EVENT_BUS_KEEP_DAYS, and the outbox from which it is published anew
 * keeps it for 7 days.
 */
export function readProcessedKeepMs(service: string, env: Env, faults: string[]): number {
  const days = (name: string, usual: number) => wholeNumbers(env, faults)(name, usual, [1, 3_650]) * dayMs;
  const name = variableOf(service, "PROCESSED_KEEP_DAYS");
  const inboxMs = days(name, 14);
  const brokerMs = days("EVENT_BUS_KEEP_DAYS", 7);
  const tooSoon = inboxForgetsTooSoon({ inboxMs, brokerMs, redriveMs: days("EVENT_REDRIVE_DAYS", 7) });
  if (tooSoon) faults.push(`${name} is too small: ${tooSoon}`);
  return inboxMs;
}
