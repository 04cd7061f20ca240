/** The settings that every service has. */
import {
  type ApiKey,
  type Env,
  hostNameIn,
  type LogOptions,
  readAllowedHosts,
  readApiKeys,
  readVerifyingKeys,
  type VerifyingKey,
} from "@todoke/http";
import { type RetentionSettings, readRetentionSettings } from "./retention-settings.ts";
import { envName, integerReader, readBoolean } from "./settings.ts";
import { readTelemetrySettings, type TelemetrySettings } from "./telemetry.ts";
import { readWorkerSettings, type WorkerOverrides } from "./worker-settings.ts";

export interface CommonSettings {
  readonly databaseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly connectionsMax: number;
  /** Values of the Host header that name this service. */
  readonly hostNames: readonly string[];
  /** False: neither /docs nor /openapi.json is served. */
  readonly apiDocs: boolean;
  readonly log: LogOptions;
  readonly telemetry: TelemetrySettings;
  readonly apiKeys: readonly ApiKey[];
  readonly tokenKeys: readonly VerifyingKey[];
  readonly isDev: boolean;
  readonly roles: ReadonlySet<string>;
  /** By the name of the worker. */
  readonly workers: Readonly<Record<string, WorkerOverrides>>;
  readonly retention: RetentionSettings;
}

export interface SettingsOf {
  readonly name: string;
  readonly port: number;
  readonly roles: readonly string[];
  readonly workers: readonly string[];
  readonly emits: boolean;
  readonly consumes: boolean;
}

const logLevels = ["debug", "error", "fatal", "info", "silent", "trace", "warn"] as const;

export function readCommonSettings(of: SettingsOf, env: Env, errors: string[]): CommonSettings {
  const variable = (what: string) => envName(of.name, what);
  const databaseUrl = readDatabaseUrl(of.name, env, errors);
  const port = Number(env[variable("PORT")] || of.port);
  if (!Number.isInteger(port) || port < 0 || port > 64_535)
    errors.push(`${variable("PORT")} should be a port from 0 to 64535`);
  const level = logLevels.find((each) => each === (env.LOG_LEVEL || "info"));
  if (!level) errors.push(`LOG_LEVEL should be one of ${logLevels.join(", ")}`);
  const host = env[variable("HOST")] || "127.0.0.1";
  const { keys, faults } = readApiKeys(env);
  errors.push(...faults);
  return {
    databaseUrl,
    host,
    port,
    connectionsMax: integerReader(env, errors)(variable("CONNECTIONS_MAX"), 10_000, [10, 1_000_000]),
    hostNames: [host, ...hostNameIn(env[variable("URL")]), ...readAllowedHosts(env, errors)],
    apiDocs: readBoolean(env, errors, "TODOKE_API_DOCS", true),
    log: { level: level ?? "info", format: readLogFormat(env, errors) },
    telemetry: readTelemetrySettings(env, errors),
    apiKeys: keys,
    tokenKeys: readVerifyingKeys(env, errors),
    isDev: env.TODOKE_DEV === "true",
    roles: readRoles(of, env, errors),
    workers: readWorkers(of, env, errors),
    retention: readRetentionSettings(of, env, errors),
  };
}

function readLogFormat({ LOG_FORMAT: format = "" }: Env, errors: string[]): "json" | "text" {
  if (format === "json" || format === "text") return format;
  if (format !== "") errors.push("LOG_FORMAT should be json or text");
  return process.stdout.isTTY ? "text" : "json";
}

export function readDatabaseUrl(name: string, env: Env, errors: string[]): string {
  const databaseUrl = env[envName(name, "DATABASE_URL")] || env.DATABASE_URL || "";
  if (!databaseUrl) errors.push("DATABASE_URL is not set: it should name a PostgreSQL database");
  return databaseUrl;
}

function readRoles({ name, roles }: SettingsOf, env: Env, errors: string[]): ReadonlySet<string> {
  const variable = envName(name, "ROLES");
  const wanted = (env[variable] || roles.join()).split(",").map((role) => role.trim());
  if (!wanted.every((role) => roles.includes(role)))
    errors.push(`${variable} should name one or more of ${roles.join(", ")}, with commas between them`);
  return new Set(wanted);
}

/** A wrong setting of the whole service is one error, however many workers use it. */
function readWorkers({ name, workers }: SettingsOf, env: Env, errors: string[]): CommonSettings["workers"] {
  const found: string[] = [];
  const read = workers.map((worker) => [worker, readWorkerSettings({ service: name, worker }, env, found)] as const);
  errors.push(...new Set(found));
  return Object.fromEntries(read);
}
