/**
 * The settings that services know. They are found by letting each service read its settings and recording the names, so that
 * no list can be out of date (docs/adr/0074).
 */
import { type RecordedSetting, recordSettings } from "@todoke/http";
import { allSubjects, busVariables, listSettingsBeside } from "@todoke/service";
import { secretNames } from "./secret-files.ts";
import type { LoadedService } from "./select-services.ts";
import type { Env } from "./services.ts";
import { getDemoPort, getPostgresPort, getProviderPort, prefixOf, variable } from "./settings.ts";
import { suggest } from "./suggest.ts";

/** The variables of the environment that the service reads. */
export function readSettingsOf({ entry, service }: LoadedService, env: Env): ReadonlyMap<string, RecordedSetting> {
  const recording = recordSettings(env);
  for (const name of [...allSubjects.flatMap(busVariables), "EVENT_BUS_KEEP_DAYS"]) void recording.env[name];
  for (const what of ["PORT", "URL"] as const) void recording.env[variable(entry.name, what)];
  service.configErrors(recording.env);
  return recording.settings;
}

/** Other settings are read only with these values. */
export const branches: Env = { NOTIFICATION_SENDER: "webhook", ORDERS_BROKER: "http" };

export function listKnownSettings(loaded: readonly LoadedService[]): ReadonlySet<string> {
  const read = loaded.flatMap((each) => [{}, branches].flatMap((env) => [...readSettingsOf(each, env).keys()]));
  const secrets = secretNames(loaded.map(({ entry }) => entry));
  const ofDev = [getPostgresPort, getProviderPort, getDemoPort].map((port) => port({}).variable);
  const beside = [...read, ...secrets].flatMap(listSettingsBeside);
  return new Set([...read, ...secrets, ...[...secrets].map((name) => `${name}_FILE`), ...beside, ...ofDev]);
}

export interface UnknownSettings {
  /** Very similar to a known one: a fault, because the known one would silently keep its default. */
  readonly misspelt: readonly string[];
  /** Not similar to any. It may belong to another program, so it stops nothing. */
  readonly unknown: readonly string[];
}

/** The variables that look like settings of these services, and are none. Each is a sentence. */
export function findUnknownSettings(loaded: readonly LoadedService[], env: Env): UnknownSettings {
  const known = listKnownSettings(loaded);
  const prefixes = ["TODOKE_", "EVENT_BUS_", ...loaded.map(({ entry }) => prefixOf(entry.name))];
  const names = Object.keys(env).filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
  const unknown = names.filter((name) => !known.has(name) && !name.startsWith("TODOKE_TEST_"));
  const described = unknown.map((name) => ({ name, hint: suggest(name, [...known]) }));
  return {
    misspelt: described.filter(({ hint }) => hint).map(({ name, hint }) => `${name} is not a setting.${hint}`),
    unknown: described.filter(({ hint }) => !hint).map(({ name }) => `${name} is not a setting of Todoke`),
  };
}
