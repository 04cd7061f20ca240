/** `todoke config`: the settings in force, and where each value comes from. It never prints a secret. */
import type { Command } from "../command.ts";
import { findUnknownSettings, readSettingsOf } from "../known-settings.ts";
import { print, printError, styled, table } from "../output.ts";
import { secretNames } from "../secret-files.ts";
import { findErrors, type LoadedService, loadAll, selectServices } from "../select-services.ts";
import type { Env } from "../services.ts";
import { prefixOf, redactUrl } from "../settings.ts";

export const config: Command = {
  name: "config",
  summary: "print the settings in force, and where each value comes from",
  usage: "todoke config [service…] [--all] [--json]",
  details: `
Prints the settings of the named services, or of all services that have a database, with their values and sources:
default, environment, the file of <NAME>_FILE, or the variable of all services or workers that decides. Secrets are
hidden, passwords in addresses too. It connects to nothing.

Wrong and misspelt settings are printed after them; the exit code is then 2.`,
  switches: { all: "also those that are not set and have no default", json: "print JSON" },
  takesArgs: true,
  async run({ env, services, args, switches }) {
    const loaded = await loadAll(selectServices(services, args, env));
    const { misspelt, unknown } = findUnknownSettings(loaded, env);
    const errors = [...new Set([...findErrors(loaded, env), ...misspelt])];
    const settings = listSettings(loaded, env).filter(({ value }) => value !== null || switches.has("all"));
    if (switches.has("json")) print(JSON.stringify({ settings, errors, unknown }, null, 2));
    else {
      for (const [service, rows] of Map.groupBy(settings, (setting) => setting.service))
        print(`${service ?? "all services"}\n${table(rows.map(toRow))}\n`);
      for (const text of unknown) printError(`${styled("yellow", "!", process.stderr)} ${text}`);
      for (const text of errors) printError(`${styled("red", "✗", process.stderr)} ${text}`);
    }
    return errors.length > 0 ? 2 : 0;
  },
};

interface ShownSetting {
  /** Null: it is shared by services. */
  readonly service: string | null;
  readonly name: string;
  /** Null: not set, and without a default. */
  readonly value: string | null;
  readonly source: "default" | "environment" | "file" | null;
  /** The variable that decides, if it has another name; or the file. */
  readonly from?: string;
}

function listSettings(loaded: readonly LoadedService[], env: Env): readonly ShownSetting[] {
  const secrets = secretNames(loaded.map(({ entry }) => entry));
  const shown = new Map<string, ShownSetting>();
  for (const each of loaded) {
    const prefix = prefixOf(each.entry.name);
    for (const [name, { value, variable }] of readSettingsOf(each, env)) {
      const service = name.startsWith(prefix) ? each.entry.name : null;
      const redacted = value ? hideSecrets(value, secrets.has(name)) : null;
      shown.set(name, { service, name, value: redacted, ...sourceOf({ name, variable, isSet: Boolean(value) }, env) });
    }
  }
  const order = (setting: ShownSetting) => `${setting.service ?? ""} ${setting.name}`;
  return [...shown.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

interface ReadSetting {
  readonly name: string;
  readonly variable: string | undefined;
  readonly isSet: boolean;
}

function sourceOf({ name, variable, isSet }: ReadSetting, env: Env): Pick<ShownSetting, "source" | "from"> {
  if (variable === undefined) return { source: isSet ? "default" : null };
  const file = env[`${variable}_FILE`];
  if (file) return { source: "file", from: file };
  return { source: "environment", ...(variable !== name && { from: variable }) };
}

const connectionUrl = /^(postgres|postgresql|nats|tls|amqp|amqps|redis|rediss):\/\//;

/** A secret is shown only if it is the address of a server, without its password. */
function hideSecrets(value: string, isSecret: boolean): string {
  // Everything before the last @ of an address can be a password.
  if (!isSecret) return value.replace(/:\/\/\S*@/g, "://(hidden)@");
  const parts = value.split(",").map((part) => part.trim());
  return parts.every((part) => connectionUrl.test(part)) ? parts.map(redactUrl).join(",") : "(hidden)";
}

function toRow({ name, value, source, from }: ShownSetting): string[] {
  return [name, value ?? "(not set)", [source ?? "", from ?? ""].filter(Boolean).join(" ")];
}
