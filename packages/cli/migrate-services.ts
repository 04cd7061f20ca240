/** Runs the migrations of services, one service after the other, and returns the files that ran. */
import type { AppliedMigration } from "@todoke/kernel/db";
import { migrateBus } from "./bus.ts";
import { CommandFailed, formatError } from "./errors.ts";
import { type LoadedService, listSubjects } from "./select-services.ts";
import type { Env } from "./services.ts";
import { listBuses } from "./settings.ts";

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
  for (const { entry, service } of loaded) all.push(await runOne(entry.name, () => service.migrate(env, options)));
  return all;
}

/** The tables of every bus in PostgreSQL that the services use. A service creates them when it opens the bus, if its role may. */
export function migrateBuses(
  loaded: readonly LoadedService[],
  env: Env,
  options: { readonly dryRun: boolean },
): Promise<ServiceMigrations> {
  const buses = listBuses(env, listSubjects(loaded.map(({ service }) => service)));
  return runOne("bus", async () => (await Promise.all(buses.map(({ url }) => migrateBus(url, options)))).flat());
}

async function runOne(
  service: string,
  migrate: () => Promise<readonly AppliedMigration[]>,
): Promise<ServiceMigrations> {
  try {
    return { service, ran: (await migrate()).map(toFileName) };
  } catch (error) {
    throw new CommandFailed(`${service} could not be migrated: ${formatError(error)}`, { cause: error });
  }
}

const toFileName = ({ set, version, name }: AppliedMigration): string =>
  `${set}/${String(version).padStart(4, "0")}_${name}.sql`;
