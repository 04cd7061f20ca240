/** The settings that the command itself reads from the environment, and how it speaks of them. */
import type { Env, ServiceEntry } from "./services.ts";

/** A setting's name: `variable("gateway-bff", "PORT")` is GATEWAY_BFF_PORT. */
export function variable(service: string, what: "PORT" | "DATABASE_URL" | "URL"): string {
  return `${service.toUpperCase().replaceAll("-", "_")}_${what}`;
}

/** A port that something will listen on, and the variable that moves it. */
export interface Port {
  readonly number: number;
  readonly of: string;
  readonly variable: string;
}

/** The ops listener of a service is this far above it, on loopback (DESIGN: "port + 1000"). */
const opsOffset = 1_000;

export const postgresPort = (env: Env): Port => port(env, { of: "PostgreSQL", variable: "POSTGRES_PORT", usual: 8090 });

/** Of the OpenID provider that `todoke dev` brings. */
export const providerPort = (env: Env): Port =>
  port(env, { of: "OpenID provider", variable: "OIDC_PROVIDER_PORT", usual: 8089 });

/** The service's own port, then that of its ops listener. */
export function portsOf(entry: ServiceEntry, env: Env): readonly [Port, Port] {
  const own = port(env, { of: entry.name, variable: variable(entry.name, "PORT"), usual: entry.port });
  return [own, { ...own, number: own.number + opsOffset, of: `${entry.name}'s metrics` }];
}

function port(env: Env, { of, variable, usual }: { of: string; variable: string; usual: number }): Port {
  return { of, variable, number: env[variable] ? Number(env[variable]) : usual };
}

export const databaseUrlOf = (entry: ServiceEntry, env: Env): string | undefined =>
  env[variable(entry.name, "DATABASE_URL")] || env.DATABASE_URL || undefined;

/**
 * Without EVENT_BUS_URL the bus is in the database that all services share. A service's own database would not do: its
 * events would wait there for consumers who look elsewhere.
 */
export const busUrlOf = (env: Env): string | undefined => env.EVENT_BUS_URL || env.DATABASE_URL || undefined;

const dayMs = 24 * 60 * 60 * 1_000;

/** EVENT_BUS_KEEP_DAYS: how long the bus keeps a message. Services with an inbox must remember events for longer. */
export function busKeepMs(env: Env, faults: string[]): number {
  const days = Number(env.EVENT_BUS_KEEP_DAYS || 7);
  if (Number.isInteger(days) && days >= 1 && days <= 3_650) return days * dayMs;
  const value = JSON.stringify(env.EVENT_BUS_KEEP_DAYS);
  faults.push(`EVENT_BUS_KEEP_DAYS is ${value} and should be a whole number from 1 to 3650`);
  return 7 * dayMs;
}

const urlSchemes = {
  database: ["postgres:", "postgresql:"],
  bus: ["nats:", "tls:", "amqp:", "amqps:", "postgres:", "postgresql:"],
};

/** Everything wrong with what these services need from the environment, a sentence each. */
export function settingFaults(entries: readonly ServiceEntry[], env: Env): string[] {
  const urls = [
    ...["DATABASE_URL", ...entries.map((entry) => variable(entry.name, "DATABASE_URL"))].map(
      (name) => [name, urlSchemes.database] as const,
    ),
    ["EVENT_BUS_URL", urlSchemes.bus] as const,
  ];
  const ports = entries.map((entry) => portsOf(entry, env)[0]);
  const faults: string[] = [];
  busKeepMs(env, faults);
  return [
    ...faults,
    ...urls.flatMap(([name, schemes]) => urlFault(name, env[name], schemes)),
    ...[postgresPort(env), providerPort(env), ...ports].flatMap((port) => portFault(port, env)),
  ];
}

function urlFault(name: string, value: string | undefined, schemes: readonly string[]): string[] {
  if (!value) return [];
  const url = URL.parse(value);
  // The value is not shown: it may hold a password.
  if (!url) return [`${name} is not a URL: it should look like ${schemes[0]}//user:password@host:port/name`];
  if (schemes.includes(url.protocol)) return [];
  return [`${name} begins with ${url.protocol}// and should begin with ${schemes.join("//, ")}//`];
}

function portFault(port: Port, env: Env): string[] {
  const highest = 65_535 - opsOffset;
  if (Number.isInteger(port.number) && port.number >= 1 && port.number <= highest) return [];
  return [`${port.variable} is ${JSON.stringify(env[port.variable])} and should be a port from 1 to ${highest}`];
}

/** A URL as it may be shown: `postgres://todoke@db.example:5432/todoke`. */
export function withoutSecrets(text: string): string {
  const url = URL.parse(text);
  if (!url) return "(not a URL)";
  url.password = "";
  url.search = "";
  return url.href;
}
