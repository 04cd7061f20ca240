/** Runs the migrations of services, one service after the other, and tells what ran. */
import type { Loaded } from "./choice.ts";
import { CommandFailed, reasonOf } from "./faults.ts";
import type { Env, Migrated } from "./services.ts";

export interface ServiceMigrated {
  readonly service: string;
  /** "kernel/0001_outbox.sql" */
  readonly ran: readonly string[];
}

export async function migrateAll(
  loaded: readonly Loaded[],
  env: Env,
  options: { readonly dryRun: boolean },
): Promise<ServiceMigrated[]> {
  const all: ServiceMigrated[] = [];
  for (const { entry, service } of loaded) {
    try {
      all.push({ service: entry.name, ran: (await service.migrate(env, options)).map(fileOf) });
    } catch (error) {
      throw new CommandFailed(`${entry.name} could not be migrated: ${reasonOf(error)}`, { cause: error });
    }
  }
  return all;
}

const fileOf = ({ set, version, name }: Migrated): string => `${set}/${String(version).padStart(4, "0")}_${name}.sql`;
