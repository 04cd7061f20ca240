/**
 * Selects and loads the services of a command, and checks their settings. Settings of other services are ignored
 * (docs/adr/0074).
 */
import { findBus, type Subject } from "@todoke/service";
import { SettingsError, UsageError } from "./errors.ts";
import { findUnknownSettings } from "./known-settings.ts";
import type { Env, Service, ServiceEntry } from "./services.ts";
import {
  findBusErrors,
  findDatabaseErrors,
  findPortErrors,
  getDatabaseUrl,
  getServicePorts,
  variable,
} from "./settings.ts";
import { suggest } from "./suggest.ts";

export interface LoadedService {
  readonly entry: ServiceEntry;
  readonly service: Service;
}

/** The named services; if none is named, those that are configured. */
export function selectServices(
  services: readonly ServiceEntry[],
  names: readonly string[],
  env: Env,
): readonly ServiceEntry[] {
  const known = services.map((entry) => entry.name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const all = known.length > 0 ? `The services are ${known.join(", ")}.` : "There are no services.";
    const errors = unknown.map((name) => `There is no service "${name}".${suggest(name, known)}`);
    throw new UsageError(`${errors.join(" ")} ${all}`);
  }
  return names.length > 0 ? services.filter((entry) => names.includes(entry.name)) : listConfigured(services, env);
}

/**
 * A service is configured if it has a database: DATABASE_URL, or its own. If none has, it is all of them: the command then uses
 * the database of the `todoke dev` in this folder, or reports what is missing.
 */
function listConfigured(services: readonly ServiceEntry[], env: Env): readonly ServiceEntry[] {
  const configured = services.filter((entry) => getDatabaseUrl(entry, env));
  return configured.length > 0 ? configured : services;
}

export function selectService(services: readonly ServiceEntry[], name: string): ServiceEntry {
  return selectServices(services, [name], {})[0] as ServiceEntry;
}

/** Everything that the services emit and consume. */
export const listSubjects = (loaded: readonly Service[]): readonly Subject[] =>
  loaded.flatMap(({ events }) => [...(events?.emits ?? []), ...(events?.consumes ?? [])]);

/** Throws SettingsError with all setting errors of all services at once, those of misspelt names and the given ones too. */
export async function loadServices(
  entries: readonly ServiceEntry[],
  env: Env,
  otherErrors: readonly string[] = [],
): Promise<readonly LoadedService[]> {
  const loaded = await loadAll(entries);
  const errors = [...otherErrors, ...findErrors(loaded, env), ...findUnknownSettings(loaded, env).misspelt];
  if (errors.length > 0) throw new SettingsError([...new Set(errors)]);
  return loaded;
}

/** Every error in the settings of the services. */
export function findErrors(loaded: readonly LoadedService[], env: Env): string[] {
  const entries = loaded.map(({ entry }) => entry);
  const ports = entries.map((entry) => getServicePorts(entry, env)[0]);
  return [
    ...findDatabaseErrors(entries, env),
    ...findBusErrors(listSubjects(loaded.map(({ service }) => service)), env),
    ...findPortErrors(ports, env),
    ...loaded.flatMap((service) => findMissingUrls(service, env)),
    ...loaded.flatMap(({ entry, service }) => service.configErrors(env).map((error) => `${entry.name}: ${error}`)),
  ];
}

/** For migrations, which need the databases only. Throws SettingsError with all errors of all services at once. */
export async function loadForMigration(entries: readonly ServiceEntry[], env: Env): Promise<readonly LoadedService[]> {
  const loaded = await loadAll(entries);
  const errors = [
    ...findDatabaseErrors(entries, env),
    ...findBusErrors(listSubjects(loaded.map(({ service }) => service)), env),
    ...findMissingDatabases(entries, env),
  ];
  if (errors.length > 0) throw new SettingsError(errors);
  return loaded;
}

export const loadAll = (entries: readonly ServiceEntry[]): Promise<readonly LoadedService[]> =>
  Promise.all(entries.map(async (entry) => ({ entry, service: await entry.load() })));

function findMissingUrls({ entry, service }: LoadedService, env: Env): string[] {
  const errors = findMissingDatabases([entry], env);
  if (!listSubjects([service]).every((subject) => findBus(subject, env)))
    errors.push("set EVENT_BUS_URL: without DATABASE_URL, services share no database for the bus");
  return errors;
}

/** If several lack a database, it is one error: usually they share one. */
export function findMissingDatabases(entries: readonly ServiceEntry[], env: Env): string[] {
  const names = entries.filter((entry) => !getDatabaseUrl(entry, env)).map(({ name }) => name);
  const [first] = names;
  if (first === undefined) return [];
  const own = names.length === 1 ? variable(first, "DATABASE_URL") : "<SERVICE>_DATABASE_URL";
  return [`${names.join(", ")}: set DATABASE_URL or ${own} to a PostgreSQL server`];
}
