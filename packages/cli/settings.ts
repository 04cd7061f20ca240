/** The settings that the command itself reads from the environment. */
import { allSubjects, type BusAddress, busVariable, findBus, type Subject } from "@todoke/service";
import type { Env, ServiceEntry } from "./services.ts";

/** `variable("gateway-bff", "PORT")` is GATEWAY_BFF_PORT. */
export function variable(service: string, what: "PORT" | "DATABASE_URL" | "URL" | "ROLES"): string {
  return `${service.toUpperCase().replaceAll("-", "_")}_${what}`;
}

/** A port to listen on, and the variable that changes it. */
export interface Port {
  readonly number: number;
  readonly of: string;
  readonly variable: string;
}

/** The ops listener of a service is on its port + 1000, on loopback. */
const opsOffset = 1_000;

export const getPostgresPort = (env: Env): Port =>
  port(env, { of: "PostgreSQL", variable: "POSTGRES_PORT", defaultPort: 8090 });

/** Port of the OpenID provider of `todoke dev`. */
export const getProviderPort = (env: Env): Port =>
  port(env, { of: "OpenID provider", variable: "OIDC_PROVIDER_PORT", defaultPort: 8089 });

/** The port of the service, and the port of its ops listener. */
export function getServicePorts(entry: ServiceEntry, env: Env): readonly [Port, Port] {
  const own = port(env, { of: entry.name, variable: variable(entry.name, "PORT"), defaultPort: entry.port });
  return [own, { ...own, number: own.number + opsOffset, of: `ops listener of ${entry.name}` }];
}

function port(env: Env, { of, variable, defaultPort }: { of: string; variable: string; defaultPort: number }): Port {
  return { of, variable, number: env[variable] ? Number(env[variable]) : defaultPort };
}

export const getDatabaseUrl = (entry: ServiceEntry, env: Env): string | undefined =>
  env[variable(entry.name, "DATABASE_URL")] || env.DATABASE_URL || undefined;

/** Each bus of the subjects once, with the first variable that names it. */
export function listBuses(env: Env, subjects: readonly Subject[] = allSubjects): readonly BusAddress[] {
  const found = subjects.flatMap((subject) => findBus(subject, env) ?? []);
  return found.filter(({ url }, index) => found.findIndex((bus) => bus.url === url) === index);
}

const dayMs = 24 * 60 * 60 * 1_000;

/** EVENT_BUS_KEEP_DAYS: how long the bus keeps a message. Inboxes must remember processed events for longer. */
export function readBusKeepMs(env: Env, errors: string[]): number {
  const days = Number(env.EVENT_BUS_KEEP_DAYS || 7);
  if (Number.isInteger(days) && days >= 1 && days <= 3_650) return days * dayMs;
  const value = JSON.stringify(env.EVENT_BUS_KEEP_DAYS);
  errors.push(`EVENT_BUS_KEEP_DAYS is ${value} and should be a whole number from 1 to 3650`);
  return 7 * dayMs;
}

const urlSchemes = {
  database: ["postgres:", "postgresql:"],
  bus: ["nats:", "tls:", "amqp:", "amqps:", "postgres:", "postgresql:"],
};

/** All errors in the settings that the command reads for these services. */
export function findSettingErrors(entries: readonly ServiceEntry[], env: Env): string[] {
  const urls = [
    ...["DATABASE_URL", ...entries.map((entry) => variable(entry.name, "DATABASE_URL"))].map(
      (name) => [name, urlSchemes.database] as const,
    ),
    ...["EVENT_BUS_URL", ...allSubjects.map(busVariable)].map((name) => [name, urlSchemes.bus] as const),
  ];
  const ports = entries.map((entry) => getServicePorts(entry, env)[0]);
  const errors: string[] = [];
  readBusKeepMs(env, errors);
  return [
    ...errors,
    ...urls.flatMap(([name, schemes]) => checkUrl(name, env[name], schemes)),
    ...[getPostgresPort(env), getProviderPort(env), ...ports].flatMap((port) => checkPort(port, env)),
  ];
}

function checkUrl(name: string, value: string | undefined, schemes: readonly string[]): string[] {
  if (!value) return [];
  const url = URL.parse(value);
  // The value is not printed: it may contain a password.
  if (!url) return [`${name} is not a URL: it should look like ${schemes[0]}//user:password@host:port/name`];
  if (schemes.includes(url.protocol)) return [];
  return [`${name} begins with ${url.protocol}// and should begin with ${schemes.join("//, ")}//`];
}

function checkPort(port: Port, env: Env): string[] {
  const highest = 65_535 - opsOffset;
  if (Number.isInteger(port.number) && port.number >= 1 && port.number <= highest) return [];
  return [`${port.variable} is ${JSON.stringify(env[port.variable])} and should be a port from 1 to ${highest}`];
}

/** A URL without password and query, for output: `postgres://todoke@db.example:5432/todoke`. */
export function redactUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) return "(not a URL)";
  url.password = "";
  url.search = "";
  return url.href;
}
