/** Which services a command is about, and whether they can be run as the environment stands. */

import { closestMatch } from "@todoke/http/closest-match";
import { Misconfigured, Misused } from "./faults.ts";
import type { Env, Service, ServiceEntry } from "./services.ts";
import { busUrlOf, databaseUrlOf, settingFaults, variable } from "./settings.ts";

export interface Loaded {
  readonly entry: ServiceEntry;
  readonly service: Service;
}

/** Those that were named; all when none was. */
export function chosen(services: readonly ServiceEntry[], names: readonly string[]): readonly ServiceEntry[] {
  const known = services.map((entry) => entry.name);
  const strangers = names.filter((name) => !known.includes(name));
  if (strangers.length > 0) {
    const all = known.length > 0 ? `The services are ${known.join(", ")}.` : "There are no services yet.";
    throw new Misused(`${strangers.map((name) => noSuchService(name, known)).join(" ")} ${all}`);
  }
  return names.length > 0 ? services.filter((entry) => names.includes(entry.name)) : services;
}

function noSuchService(name: string, known: readonly string[]): string {
  const meant = closestMatch(name, known);
  return `There is no service "${name}"${meant ? `; did you mean ${meant}` : ""}.`;
}

/** Loads the services; throws Misconfigured with everything that is wrong, of all of them, at once. */
export async function refuseMisconfigured(entries: readonly ServiceEntry[], env: Env): Promise<readonly Loaded[]> {
  const loaded = await Promise.all(entries.map(async (entry) => ({ entry, service: await entry.load() })));
  const faults = [
    ...settingFaults(entries, env),
    ...entries.flatMap((entry) => missingUrls(entry, env)),
    ...loaded.flatMap(({ entry, service }) => service.configErrors(env).map((fault) => `${entry.name}: ${fault}`)),
  ];
  if (faults.length > 0) throw new Misconfigured([...new Set(faults)]);
  return loaded;
}

function missingUrls(entry: ServiceEntry, env: Env): string[] {
  const faults = databaseUrlOf(entry, env) ? [] : [missingDatabase(entry)];
  if (!busUrlOf(env))
    faults.push("set EVENT_BUS_URL: without DATABASE_URL there is no database that all services share");
  return faults;
}

export const missingDatabase = ({ name }: ServiceEntry): string =>
  `${name}: set DATABASE_URL or ${variable(name, "DATABASE_URL")} to a PostgreSQL server`;
