/** The dead rows of a service, reached by its database alone. */
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { Misused } from "../faults.ts";
import { onDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

export interface DeadOf {
  readonly service: string;
  readonly db: Db;
  /** Those that were asked for; all when none was. */
  readonly tables: readonly DeadLetters[];
  /** Tells the workers of this table, in every copy of the service that runs. */
  wake(table: DeadLetters): Promise<void>;
}

export interface DeadWish {
  readonly entry: ServiceEntry;
  readonly env: Env;
  /** The name of the only table that is meant. */
  readonly table?: string | undefined;
}

/** Runs `work` on the service's tables, and says what to do where the database refuses. */
export async function onDead<T>(wish: DeadWish, work: (dead: DeadOf) => Promise<T>): Promise<T> {
  const tables = only((await wish.entry.load()).dead?.tables ?? [], wish);
  return onDatabase({ ...wish, purpose: "todoke dead" }, ({ service, db, wake }) =>
    work({ service, db, tables, wake: ({ name }) => wake(name) }),
  );
}

function only(tables: readonly DeadLetters[], { entry, table }: DeadWish): readonly DeadLetters[] {
  const found = table === undefined ? tables : tables.filter(({ name }) => name === table);
  if (found.length > 0 || table === undefined) return found;
  const known = tables.map(({ name }) => name).join(", ") || "none";
  throw new Misused(`${entry.name} gives up no rows of "${table}". Its tables with such rows: ${known}.`);
}
