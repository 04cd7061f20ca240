/**
 * Every secret can be given as a file: `OIDC_CLIENT_SECRET_FILE=/run/secrets/oidc` in place of `OIDC_CLIENT_SECRET`. That is how
 * Docker and Kubernetes mount secrets, and it keeps them out of the environment that child processes and crash reports show.
 */
import { readFileSync } from "node:fs";
import { allSubjects, busVariables } from "@todoke/service";
import { SettingsError } from "./errors.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { variable } from "./settings.ts";

/** Settings that are secrets, or addresses that may contain one. */
const sharedNames = [
  "DATABASE_URL",
  "EVENT_BUS_URL",
  "REDIS_URL",
  "REDIS_SENTINEL_PASSWORD",
  "MATCHMAKING_REDIS_URL",
  "MATCHMAKING_REDIS_SENTINEL_PASSWORD",
  "OIDC_CLIENT_SECRET",
  "GATEWAY_BFF_SECRET",
  "GATEWAY_BFF_TOKEN_KEY",
  "MATCHMAKING_TICKET_SECRET",
  "NOTIFICATION_WEBHOOK_SECRET",
  "NOTIFICATION_WEBHOOK_URL",
  "NOTIFICATION_WEBHOOK_URLS",
  "ORDERS_BROKER_SECRET",
  "TODOKE_API_KEYS",
  "TODOKE_TOKEN_KEYS",
];

// A secret is short. A larger file is a mistake, such as a path to a disk image.
const bytesMax = 64 * 1024;

/** The settings of these services that are secrets. Each can be given as a file, and none is ever printed. */
export function secretNames(services: readonly ServiceEntry[]): ReadonlySet<string> {
  const databases = services.map((entry) => variable(entry.name, "DATABASE_URL"));
  const buses = allSubjects.flatMap(busVariables);
  const direct = ["DATABASE_URL", ...databases, ...buses].map((name) => name.replace(/URL$/, "DIRECT_URL"));
  return new Set([...sharedNames, ...databases, ...direct, ...buses]);
}

/** The environment with the contents of the files. Throws SettingsError with all errors at once; none contains a secret. */
export function readSecretFiles(env: Env, services: readonly ServiceEntry[]): Env {
  const errors: string[] = [];
  const read: Record<string, string> = {};
  for (const name of secretNames(services)) {
    const path = env[`${name}_FILE`];
    if (!path) continue;
    if (env[name]) errors.push(`${name} and ${name}_FILE are both set: keep one`);
    else read[name] = readSecret(`${name}_FILE`, path, errors);
  }
  if (errors.length > 0) throw new SettingsError(errors);
  return { ...env, ...read };
}

function readSecret(setting: string, path: string, errors: string[]): string {
  try {
    const text = readFileSync(path, "utf8");
    const secret = text.trim();
    if (secret !== "" && text.length <= bytesMax) return secret;
    errors.push(`${setting}: ${path} ${secret === "" ? "is empty" : "is too large for a secret"}`);
  } catch (error) {
    errors.push(`${setting}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? error})`);
  }
  return "";
}
