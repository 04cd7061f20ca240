/**
 * `todoke keys` changes the table `api_keys` in the database of each service. If one service fails, the others are changed
 * all the same. The failure is printed, and the command can be repeated.
 */

import type { Invocation } from "../command.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { printError, styled } from "../output.ts";
import { selectServices } from "../select-services.ts";
import { requireDatabaseUrls, type ServiceDatabase, withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

export interface Target {
  readonly entries: readonly ServiceEntry[];
  /** Services that have no database here. Keys in them stay as they are. */
  readonly skipped: readonly string[];
  readonly env: Env;
}

export interface ServiceFailure {
  readonly service: string;
  readonly message: string;
}

export interface ServiceResults<T> {
  readonly succeeded: readonly { readonly service: string; readonly result: T }[];
  readonly failed: readonly ServiceFailure[];
}

/** The services of --services, or all that are configured. Throws if a database URL is missing, before anything is changed. */
export async function parseTarget({ services, values, env }: Invocation): Promise<Target> {
  const names = values.services?.split(",").map((name) => name.trim()) ?? [];
  if (names.some((name) => name === "")) throw new UsageError("--services is a list of services, separated by commas.");
  const isAll = names.length === 0 || names.join() === "all";
  const entries = selectServices(services, isAll ? [] : names, env);
  await requireDatabaseUrls(entries, env);
  const skipped = isAll ? services.filter((entry) => !entries.includes(entry)) : [];
  return { entries, skipped: skipped.map(({ name }) => name), env };
}

export async function forEachService<T>(
  { entries, env }: Target,
  work: (database: ServiceDatabase) => Promise<T>,
): Promise<ServiceResults<T>> {
  const succeeded: { service: string; result: T }[] = [];
  const failed: ServiceFailure[] = [];
  for (const entry of entries) {
    try {
      const result = await withDatabase({ entry, env, purpose: "todoke keys" }, work);
      succeeded.push({ service: entry.name, result });
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      failed.push({ service: entry.name, message: error.message });
    }
  }
  return { succeeded, failed };
}

/** Returns the exit code. */
export function printFailures(failed: readonly ServiceFailure[]): number {
  for (const { message } of failed) printError(`${styled("red", "✗", process.stderr)} ${message}`);
  return failed.length > 0 ? 1 : 0;
}
