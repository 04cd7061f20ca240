/** Selects and loads the services of a command, and checks their settings. */
import { findBus } from "@todoke/service";
import { SettingsError, UsageError } from "./errors.ts";
import type { Env, Service, ServiceEntry } from "./services.ts";
import { findSettingErrors, getDatabaseUrl, variable } from "./settings.ts";
import { suggest } from "./suggest.ts";

export interface LoadedService {
  readonly entry: ServiceEntry;
  readonly service: Service;
}

/** The named services; all if none is named. */
export function selectServices(services: readonly ServiceEntry[], names: readonly string[]): readonly ServiceEntry[] {
  const known = services.map((entry) => entry.name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const all = known.length > 0 ? `The services are ${known.join(", ")}.` : "There are no services.";
    const errors = unknown.map((name) => `There is no service "${name}".${suggest(name, known)}`);
    throw new UsageError(`${errors.join(" ")} ${all}`);
  }
  return names.length > 0 ? services.filter((entry) => names.includes(entry.name)) : services;
}

export function selectService(services: readonly ServiceEntry[], name: string): ServiceEntry {
  return selectServices(services, [name])[0] as ServiceEntry;
}

/** Throws SettingsError with all setting errors of all services at once. */
export async function loadServices(entries: readonly ServiceEntry[], env: Env): Promise<readonly LoadedService[]> {
  const loaded = await Promise.all(entries.map(async (entry) => ({ entry, service: await entry.load() })));
  const errors = [
    ...findSettingErrors(entries, env),
    ...loaded.flatMap((service) => findMissingUrls(service, env)),
    ...loaded.flatMap(({ entry, service }) => service.configErrors(env).map((error) => `${entry.name}: ${error}`)),
  ];
  if (errors.length > 0) throw new SettingsError([...new Set(errors)]);
  return loaded;
}

/** For migrations, which need the databases only. Throws SettingsError with all errors of all services at once. */
export async function loadForMigration(entries: readonly ServiceEntry[], env: Env): Promise<readonly LoadedService[]> {
  const errors = [
    ...findSettingErrors(entries, env),
    ...entries.filter((entry) => !getDatabaseUrl(entry, env)).map(missingDatabaseError),
  ];
  if (errors.length > 0) throw new SettingsError(errors);
  return Promise.all(entries.map(async (entry) => ({ entry, service: await entry.load() })));
}

function findMissingUrls({ entry, service }: LoadedService, env: Env): string[] {
  const errors = getDatabaseUrl(entry, env) ? [] : [missingDatabaseError(entry)];
  const { emits = [], consumes = [] } = service.events ?? {};
  if (![...emits, ...consumes].every((subject) => findBus(subject, env)))
    errors.push("set EVENT_BUS_URL: without DATABASE_URL, services share no database for the bus");
  return errors;
}

export const missingDatabaseError = ({ name }: ServiceEntry): string =>
  `${name}: set DATABASE_URL or ${variable(name, "DATABASE_URL")} to a PostgreSQL server`;
