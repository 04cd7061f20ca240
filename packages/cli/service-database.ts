/** Connects to the database of a service. The service need not run. */
import { CommitUnknown, type Db, getSqlState, isUnavailable, openDb } from "@todoke/kernel/db";
import { notifyTopic } from "@todoke/kernel/worker";
import { findRunningDev } from "./data-folder.ts";
import { CommandFailed, formatError, SettingsError } from "./errors.ts";
import { findMissingDatabases } from "./select-services.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { findDatabaseErrors, getDatabaseUrl } from "./settings.ts";

export interface ServiceDatabase {
  readonly service: string;
  readonly db: Db;
  /** Wakes the workers of a table in every running process of the service. Call it after the commit. Never rejects: the poll
   *  finds the change as well. */
  wake(table: string): Promise<void>;
}

export interface DatabaseOptions {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** Application name of the connection: "todoke dead". */
  readonly purpose: string;
  /** For statements that may take longer than those of a service. */
  readonly statementTimeoutMs?: number;
}

/** Runs `work` on the schema of the service. An error of the database is explained as a CommandFailed. */
export async function withDatabase<T>(
  { entry, env, purpose, ...limits }: DatabaseOptions,
  work: (database: ServiceDatabase) => Promise<T>,
): Promise<T> {
  const url = await resolveDatabaseUrl(entry, env);
  const schema = entry.name.replaceAll("-", "_");
  const db = openDb({ url, schema, applicationName: purpose, poolMax: 1, ...limits });
  const wake = (table: string) => notifyTopic(db, `${schema}.${table}`).catch(() => {});
  try {
    return await work({ service: entry.name, db, wake });
  } catch (error) {
    throw toCommandError(entry.name, error);
  } finally {
    await db.end();
  }
}

/** Throws SettingsError with all errors of all these services at once. */
export async function requireDatabaseUrls(entries: readonly ServiceEntry[], env: Env): Promise<void> {
  const missing = (await findRunningDev())?.databaseUrl ? [] : findMissingDatabases(entries, env);
  const errors = [...findDatabaseErrors(entries, env), ...missing];
  if (errors.length > 0) throw new SettingsError(errors);
}

async function resolveDatabaseUrl(entry: ServiceEntry, env: Env): Promise<string> {
  await requireDatabaseUrls([entry], env);
  return getDatabaseUrl(entry, env) ?? (await findRunningDev())?.databaseUrl ?? "";
}

const missingStates = ["42P01", "3F000"]; // a table, a schema

function toCommandError(service: string, error: unknown): unknown {
  if (error instanceof CommitUnknown)
    return new CommandFailed(
      `The connection to the database of ${service} was lost during COMMIT, so the result is unknown. Run the command again; it is idempotent.`,
    );
  const state = getSqlState(error);
  if (state !== undefined && missingStates.includes(state))
    return new CommandFailed(`The schema of ${service} is not up to date: run \`todoke migrate ${service}\`.`);
  // The driver's error if the server requires a password and the URL has none.
  if (error instanceof Error && error.message.startsWith("SASL:"))
    return new CommandFailed(`The database of ${service} requires a password, and its URL has none.`);
  if (state !== undefined || isUnavailable(error))
    return new CommandFailed(`The database of ${service} failed: ${formatError(error)}`);
  return error;
}
