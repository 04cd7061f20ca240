/** The database of a service, reached by its URL alone: no copy of the service need run. */
import { CommitUnknown, type Db, getSqlState, isUnavailable, openDb } from "@todoke/kernel/db";
import { notifyTopic } from "@todoke/kernel/worker";
import { missingDatabase } from "./choice.ts";
import { livingHolder } from "./data-folder.ts";
import { CommandFailed, Misconfigured, reasonOf } from "./faults.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { databaseUrlOf, settingFaults } from "./settings.ts";

export interface ServiceDatabase {
  readonly service: string;
  readonly db: Db;
  /** Tells those who care for this table, in every copy of the service that runs. To be called after the commit. */
  wake(table: string): Promise<void>;
}

export interface DatabaseWish {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** As the database's operator sees it: "todoke dead". */
  readonly purpose: string;
  /** For what takes longer than a service lets a statement take. */
  readonly statementTimeoutMs?: number;
}

/** Runs `work` on the service's schema, and says what to do where the database refuses. */
export async function onDatabase<T>(
  { entry, env, purpose, ...limits }: DatabaseWish,
  work: (database: ServiceDatabase) => Promise<T>,
): Promise<T> {
  const url = await databaseUrl(entry, env);
  const schema = entry.name.replaceAll("-", "_");
  const db = openDb({ url, schema, applicationName: purpose, poolMax: 1, ...limits });
  try {
    return await work({ service: entry.name, db, wake: (table) => notifyTopic(db, `${schema}.${table}`) });
  } catch (error) {
    throw refusal(entry.name, error);
  } finally {
    await db.end();
  }
}

/** Throws Misconfigured with everything that keeps these databases from being found, at once. */
export async function refuseUnnamedDatabases(entries: readonly ServiceEntry[], env: Env): Promise<void> {
  const faults: string[] = [];
  for (const entry of entries) {
    await databaseUrl(entry, env).catch((error) => {
      if (!(error instanceof Misconfigured)) throw error;
      faults.push(...error.faults);
    });
  }
  if (faults.length > 0) throw new Misconfigured([...new Set(faults)]);
}

async function databaseUrl(entry: ServiceEntry, env: Env): Promise<string> {
  const faults = settingFaults([entry], env);
  const url = databaseUrlOf(entry, env) ?? (await livingHolder())?.databaseUrl;
  if (faults.length > 0 || url === undefined)
    throw new Misconfigured(url ? faults : [...faults, missingDatabase(entry)]);
  return url;
}

const missing = ["42P01", "3F000"]; // a table, a schema

function refusal(service: string, error: unknown): unknown {
  if (error instanceof CommitUnknown)
    return new CommandFailed(
      `The connection to the database of ${service} was lost at the last moment: it was done or not. Run it again; twice is once.`,
    );
  const state = getSqlState(error);
  if (state !== undefined && missing.includes(state))
    return new CommandFailed(`The schema of ${service} is not up to date: run \`todoke migrate ${service}\`.`);
  // The driver's own word for a server that asks for a password where the URL has none.
  if (error instanceof Error && error.message.startsWith("SASL:"))
    return new CommandFailed(`The database of ${service} asks for a password, and its URL has none.`);
  if (state !== undefined || isUnavailable(error))
    return new CommandFailed(`The database of ${service} refused: ${reasonOf(error)}`);
  return error;
}
