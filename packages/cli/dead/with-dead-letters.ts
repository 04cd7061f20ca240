/** Connects to the dead letters of a service. The service need not run. */
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { UsageError } from "../errors.ts";
import { withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

export interface ServiceDeadLetters {
  readonly service: string;
  readonly db: Db;
  /** The table of `table`; all tables if it is not set. */
  readonly tables: readonly DeadLetters[];
  /** Wakes the workers of the table in every running process of the service. */
  wake(table: DeadLetters): Promise<void>;
}

export interface DeadLetterOptions {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** Only this table. */
  readonly table?: string | undefined;
}

/** Runs `work` on the tables of the service. An error of the database is explained as a CommandFailed. */
export async function withDeadLetters<T>(
  options: DeadLetterOptions,
  work: (dead: ServiceDeadLetters) => Promise<T>,
): Promise<T> {
  const tables = selectTables((await options.entry.load()).dead?.tables ?? [], options);
  return withDatabase({ ...options, purpose: "todoke dead" }, ({ service, db, wake }) =>
    work({ service, db, tables, wake: ({ name }) => wake(name) }),
  );
}

function selectTables(tables: readonly DeadLetters[], { entry, table }: DeadLetterOptions): readonly DeadLetters[] {
  const found = table === undefined ? tables : tables.filter(({ name }) => name === table);
  if (found.length > 0 || table === undefined) return found;
  const known = tables.map(({ name }) => name).join(", ") || "none";
  throw new UsageError(`${entry.name} has no dead letters in "${table}". Its tables with dead letters: ${known}.`);
}
