/** Runs the migrations of services, one service after the other, and returns the files that ran. */
import type { AppliedMigration } from "@todoke/kernel/db";
import { CommandFailed, formatError } from "./errors.ts";
import type { LoadedService } from "./select-services.ts";
import type { Env } from "./services.ts";

export interface ServiceMigrations {
  readonly service: string;
  /** "kernel/0001_outbox.sql" */
  readonly ran: readonly string[];
}

export async function migrateServices(
  loaded: readonly LoadedService[],
  env: Env,
  options: { readonly dryRun: boolean },
): Promise<ServiceMigrations[]> {
  const all: ServiceMigrations[] = [];
  for (const { entry, service } of loaded) {
    try {
      all.push({ service: entry.name, ran: (await service.migrate(env, options)).map(toFileName) });
    } catch (error) {
      throw new CommandFailed(`${entry.name} could not be migrated: ${formatError(error)}`, { cause: error });
    }
  }
  return all;
}

const toFileName = ({ set, version, name }: AppliedMigration): string =>
  `${set}/${String(version).padStart(4, "0")}_${name}.sql`;
