/** Connects to the dead letters of a service. The service need not run. */
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { UsageError } from "../errors.ts";
import { type ServiceDatabase, withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

export interface ServiceDeadLetters extends ServiceDatabase {
  /** The selected table; all if none is selected. */
  readonly tables: readonly DeadLetters[];
}

export interface DeadLetterOptions {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** Only this table. */
  readonly table?: string | undefined;
}

/** Runs `work` on the tables of the service. An error of the database is explained as a CommandFailed. */
export async function withDeadLetters<T>(
  { table, ...options }: DeadLetterOptions,
  work: (dead: ServiceDeadLetters) => Promise<T>,
): Promise<T> {
  const all = (await options.entry.load()).dead?.tables ?? [];
  const tables = table === undefined ? all : all.filter(({ name }) => name === table);
  if (table !== undefined && tables.length === 0) {
    const known = all.map(({ name }) => name).join(", ") || "none";
    const { name } = options.entry;
    throw new UsageError(`${name} has no dead letters in "${table}". Its tables with dead letters: ${known}.`);
  }
  return withDatabase({ ...options, purpose: "todoke dead" }, (database) => work({ ...database, tables }));
}
