/** The settings that every service has. */
import {
  type ApiKey,
  type Env,
  hostNameIn,
  type LogOptions,
  maxKeyRate,
  readAllowedHosts,
  readApiKeys,
  readSetting,
  readVerifyingKeys,
  type VerifyingKey,
} from "@todoke/http";
import { type RetentionSettings, readRetentionSettings } from "./retention-settings.ts";
import { readServerUrl } from "./server-urls.ts";
import { envName, integerReader, isLoopbackHost, readBoolean, readFirstBoolean, readHosts } from "./settings.ts";
import { readTelemetrySettings, type TelemetrySettings } from "./telemetry.ts";
import { readWorkerSettings, type WorkerOverrides } from "./worker-settings.ts";

export interface CommonSettings {
  readonly databaseUrl: string;
  readonly host: string;
  readonly opsHost: string;
  readonly port: number;
  /** Whether /debug is open: on loopback, or because an operator has asked for it. */
  isDebugOpen(host: string): boolean;
  readonly connectionsMax: number;
  /** Requests per second of an API key without a rate of its own; 0: no bound. */
  readonly keyPerSecond: number;
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
  /** The settings of each worker, by its name. */
  readonly workers: Readonly<Record<string, WorkerOverrides>>;
  readonly retention: RetentionSettings;
  /** The time between two audits; 0: none. */
  readonly auditMs: number;
}

export interface SettingsOf {
  readonly name: string;
  readonly port: number;
  readonly roles: readonly string[];
  readonly workers: readonly string[];
  readonly emits: boolean;
  readonly consumes: boolean;
}

// More commands than one process can execute: only a client in a loop of cheap reads meets it.
const defaultKeyPerSecond = 10_000;

const logLevels = ["debug", "error", "fatal", "info", "silent", "trace", "warn"] as const;

export function readCommonSettings(of: SettingsOf, env: Env, errors: string[]): CommonSettings {
  const variable = (what: string) => envName(of.name, what);
  const databaseUrl = readDatabaseUrl(of.name, env, errors);
  const port = Number(readSetting(env, [variable("PORT")], String(of.port)));
  if (!Number.isInteger(port) || port < 0 || port > 64_535)
    errors.push(`${variable("PORT")} should be a port from 0 to 64535`);
  const logLevel = readSetting(env, ["LOG_LEVEL"], "info");
  const level = logLevels.find((each) => each === logLevel);
  if (!level) errors.push(`LOG_LEVEL should be one of ${logLevels.join(", ")}`);
  const { host, opsHost } = readHosts(of.name, env, errors);
  const opsDebug = readFirstBoolean(env, errors, [variable("OPS_DEBUG"), "TODOKE_OPS_DEBUG"]);
  return {
    databaseUrl,
    host,
    opsHost,
    port,
    isDebugOpen: (host) => opsDebug || isLoopbackHost(host),
    connectionsMax: integerReader(env, errors)(variable("CONNECTIONS_MAX"), 10_000, [10, 1_000_000]),
    keyPerSecond: integerReader(env, errors)(
      [variable("KEY_PER_SECOND"), "TODOKE_KEY_PER_SECOND"],
      defaultKeyPerSecond,
      [0, maxKeyRate],
    ),
    hostNames: [host, opsHost, ...hostNameIn(env[variable("URL")]), ...readAllowedHosts(env, errors)],
    apiDocs: readBoolean(env, errors, "TODOKE_API_DOCS", true),
    log: { level: level ?? "info", format: readLogFormat(env, errors) },
    telemetry: readTelemetrySettings(env, errors),
    apiKeys: readApiKeys(env, errors),
    tokenKeys: readVerifyingKeys(env, errors),
    isDev: env.TODOKE_DEV === "true",
    roles: readRoles(of, env, errors),
    workers: readWorkers(of, env, errors),
    retention: readRetentionSettings(of, env, errors),
    auditMs: integerReader(env, errors)(variable("AUDIT_HOURS"), 24, [0, 8_760]) * 60 * 60 * 1_000,
  };
}

function readLogFormat({ LOG_FORMAT: format = "" }: Env, errors: string[]): "json" | "text" {
  if (format === "json" || format === "text") return format;
  if (format !== "") errors.push("LOG_FORMAT should be json or text");
  return process.stdout.isTTY ? "text" : "json";
}

/** The database of the service: its own, or that of all services. */
export const findDatabaseUrl = (name: string, env: Env): string | undefined =>
  readServerUrl(env, envName(name, "DATABASE_URL")) ?? readServerUrl(env, "DATABASE_URL");

export function readDatabaseUrl(name: string, env: Env, errors: string[]): string {
  readSetting(env, [envName(name, "DATABASE_URL"), "DATABASE_URL"]); // `todoke config` shows which of the two decides.
  const databaseUrl = findDatabaseUrl(name, env) ?? "";
  if (!databaseUrl) errors.push("DATABASE_URL is not set: it should name a PostgreSQL database");
  return databaseUrl;
}

function readRoles({ name, roles }: SettingsOf, env: Env, errors: string[]): ReadonlySet<string> {
  const variable = envName(name, "ROLES");
  const wanted = readSetting(env, [variable], roles.join())
    .split(",")
    .map((role) => role.trim());
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
