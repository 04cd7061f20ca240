/** The dead rows of a service, reached by its database alone: no copy of the service need run. */
import { CommitUnknown, type Db, isUnavailable, openDb, sqlStateOf } from "@todoke/kernel/db";
import type { DeadTable } from "@todoke/kernel/dead";
import { wakeOthers } from "@todoke/kernel/worker";
import { missingDatabase } from "../choice.ts";
import { livingHolder } from "../data-folder.ts";
import { CommandFailed, Misconfigured, Misused, reasonOf } from "../faults.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { databaseUrlOf, settingFaults } from "../settings.ts";

export interface DeadOf {
  readonly service: string;
  readonly db: Db;
  /** Those that were asked for; all when none was. */
  readonly tables: readonly DeadTable[];
  /** Tells the workers of this table, in every copy of the service that runs. */
  wake(table: DeadTable): Promise<void>;
}

export interface DeadWish {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** The name of the only table that is meant. */
  readonly table?: string | undefined;
}

/** Runs `work` on the service's tables, and says what to do where the database refuses. */
export async function onDead<T>(wish: DeadWish, work: (dead: DeadOf) => Promise<T>): Promise<T> {
  const { entry, env } = wish;
  const { schema, tables } = (await entry.load()).dead ?? { schema: "", tables: [] };
  const url = await databaseUrl(entry, env);
  const db = openDb({ url, schema, applicationName: "todoke dead", poolMax: 1 });
  const wake = (table: DeadTable) => wakeOthers(db, `${schema}.${table.name}`);
  try {
    return await work({ service: entry.name, db, tables: only(tables, wish), wake });
  } catch (error) {
    throw refusal(entry.name, error);
  } finally {
    await db.end();
  }
}

async function databaseUrl(entry: ServiceEntry, env: Env): Promise<string> {
  const faults = settingFaults([entry], env);
  const url = databaseUrlOf(entry, env) ?? (await livingHolder())?.databaseUrl;
  if (faults.length > 0 || url === undefined)
    throw new Misconfigured(url ? faults : [...faults, missingDatabase(entry)]);
  return url;
}

function only(tables: readonly DeadTable[], { entry, table }: DeadWish): readonly DeadTable[] {
  const found = table === undefined ? tables : tables.filter(({ name }) => name === table);
  if (found.length > 0 || table === undefined) return found;
  const known = tables.map(({ name }) => name).join(", ") || "none";
  throw new Misused(`${entry.name} gives up no rows of "${table}". Its tables with such rows: ${known}.`);
}

const missing = ["42P01", "3F000"]; // a table, a schema

function refusal(service: string, error: unknown): unknown {
  if (error instanceof CommitUnknown)
    return new CommandFailed(
      `The connection to the database of ${service} was lost at the last moment: it was redriven or not. Run it again; twice is once.`,
    );
  const state = sqlStateOf(error);
  if (state !== undefined && missing.includes(state))
    return new CommandFailed(`The schema of ${service} is not up to date: run \`todoke migrate ${service}\`.`);
  if (state !== undefined || isUnavailable(error))
    return new CommandFailed(`The database of ${service} refused: ${reasonOf(error)}`);
  return error;
}
