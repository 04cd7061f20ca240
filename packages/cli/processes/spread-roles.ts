/** Which roles each process of a command has. */
import type { Env, ServiceEntry } from "../services.ts";
import { variable } from "../settings.ts";

export interface Spread {
  readonly number: number;
  readonly count: number;
  readonly entries: readonly ServiceEntry[];
}

/**
 * Every process serves the API, and the first half has the other roles too: fewer workers have larger batches, and fewer of them
 * poll (docs/adr/0084). <SERVICE>_ROLES, if set, holds for every process.
 */
export function spreadRoles(env: Env, { number, count, entries }: Spread): Env {
  if (number <= Math.ceil(count / 2)) return env;
  const unset = entries.map((entry) => variable(entry.name, "ROLES")).filter((name) => !env[name]);
  return { ...env, ...Object.fromEntries(unset.map((name) => [name, "api"])) };
}
