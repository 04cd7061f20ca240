/** All that this service takes from the environment, checked whole before anything starts. */
import { type ApiKey, type LogOptions, readApiKeys } from "@todoke/http";

export type Env = Readonly<Record<string, string | undefined>>;

export interface Config {
  readonly databaseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly apiKeys: readonly ApiKey[];
  readonly logLevel: LogLevel;
}

type LogLevel = NonNullable<LogOptions["level"]>;
const logLevels: readonly string[] = [
  "debug",
  "error",
  "fatal",
  "info",
  "silent",
  "trace",
  "warn",
] satisfies LogLevel[];

/** The settings, or every fault that they have, a sentence each. */
export function readConfig(env: Env): Config | readonly string[] {
  const faults: string[] = [];
  const databaseUrl = env.ENTITLEMENT_DATABASE_URL || env.DATABASE_URL || "";
  if (!databaseUrl) faults.push("DATABASE_URL is not set: it should name a PostgreSQL database");
  const port = Number(env.ENTITLEMENT_PORT || 8082);
  if (!Number.isInteger(port) || port < 0 || port > 64_535)
    faults.push("ENTITLEMENT_PORT should be a port from 0 to 64535");
  const logLevel = env.LOG_LEVEL || "info";
  if (!logLevels.includes(logLevel)) faults.push(`LOG_LEVEL should be one of ${logLevels.join(", ")}`);
  const { keys, faults: keyFaults } = readApiKeys(env);
  faults.push(...keyFaults);
  if (faults.length > 0) return faults;
  const host = env.ENTITLEMENT_HOST || "127.0.0.1";
  return Object.freeze({ databaseUrl, host, port, apiKeys: keys, logLevel: logLevel as LogLevel });
}
