/**
 * `todoke keys` works on the table `api_keys` of each service, in the service's own database. One that refuses does not
 * keep the others from being asked: what could not be done is told, and doing it again does no harm.
 */
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { CommandFailed, Misused } from "../faults.ts";
import { complain, styled } from "../output.ts";
import { onDatabase, refuseUnnamedDatabases, type ServiceDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

export interface Target {
  readonly entries: readonly ServiceEntry[];
  readonly env: Env;
}

export interface Refused {
  readonly service: string;
  readonly why: string;
}

export interface Answers<T> {
  readonly answered: readonly { readonly service: string; readonly answer: T }[];
  readonly refused: readonly Refused[];
}

/** The services of --services, or all; refused before anything is done when the database of one is not named. */
export async function targetOf({ services, values, env }: Call): Promise<Target> {
  const names = values.services?.split(",").map((name) => name.trim()) ?? [];
  if (names.some((name) => name === "")) throw new Misused("--services names services, with commas between them.");
  const entries = chosen(services, names.join() === "all" ? [] : names);
  await refuseUnnamedDatabases(entries, env);
  return { entries, env };
}

export async function onEachService<T>(
  { entries, env }: Target,
  work: (database: Omit<ServiceDatabase, "wake"> & { tellThoseWhoRun(): Promise<void> }) => Promise<T>,
): Promise<Answers<T>> {
  const answered: { service: string; answer: T }[] = [];
  const refused: Refused[] = [];
  for (const entry of entries) {
    try {
      const answer = await onDatabase({ entry, env, purpose: "todoke keys" }, ({ service, db, wake }) =>
        // Without it they know when their cache ends; a signal that fails is no reason to say that the work has.
        work({ service, db, tellThoseWhoRun: () => wake("api_keys").catch(() => {}) }),
      );
      answered.push({ service: entry.name, answer });
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      refused.push({ service: entry.name, why: error.message });
    }
  }
  return { answered, refused };
}

/** Says what could not be done, and returns the exit code. */
export function codeOf(refused: readonly Refused[]): number {
  for (const { why } of refused) complain(`${styled("red", "✗", process.stderr)} ${why}`);
  return refused.length > 0 ? 1 : 0;
}
