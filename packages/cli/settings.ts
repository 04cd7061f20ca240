/** The settings that the command itself reads from the environment. */
import { formatServerUrl } from "@todoke/kernel/server-url";
import {
  allSubjects,
  type BusAddress,
  busVariables,
  checkServerUrl,
  findBus,
  findDatabaseUrl,
  readHosts,
  type Subject,
} from "@todoke/service";
import type { Env, ServiceEntry } from "./services.ts";

/** `variable("gateway-bff", "PORT")` is GATEWAY_BFF_PORT. */
export function variable(service: string, what: "PORT" | "DATABASE_URL" | "URL" | "ROLES"): string {
  return prefixOf(service) + what;
}

/** All settings of the service begin with it: "GATEWAY_BFF_". */
export const prefixOf = (service: string): string => `${service.toUpperCase().replaceAll("-", "_")}_`;

/** A port to listen on, and the variable that changes it. */
export interface Port {
  readonly number: number;
  readonly of: string;
  readonly variable: string;
  /** The address that it is bound to; loopback by default. */
  readonly host?: string;
}

/** The ops listener of a service is on its port + 1000. */
const opsOffset = 1_000;

export const getPostgresPort = (env: Env): Port =>
  port(env, { of: "PostgreSQL", variable: "POSTGRES_PORT", defaultPort: 8090 });

/** Port of the OpenID provider of `todoke dev`. */
export const getProviderPort = (env: Env): Port =>
  port(env, { of: "OpenID provider", variable: "OIDC_PROVIDER_PORT", defaultPort: 8089 });

/** Port of the site of `todoke demo`. */
export const getDemoPort = (env: Env): Port => port(env, { of: "demo", variable: "DEMO_PORT", defaultPort: 8087 });

/** The port of the service, and the port of its ops listener. */
export function getServicePorts(entry: ServiceEntry, env: Env): readonly [Port, Port] {
  const own = port(env, { of: entry.name, variable: variable(entry.name, "PORT"), defaultPort: entry.port });
  const { host, opsHost } = readHosts(entry.name, env);
  const ops = { ...own, number: own.number + opsOffset, of: `ops listener of ${entry.name}`, host: opsHost };
  return [{ ...own, host }, ops];
}

function port(env: Env, { of, variable, defaultPort }: { of: string; variable: string; defaultPort: number }): Port {
  return { of, variable, number: env[variable] ? Number(env[variable]) : defaultPort };
}

export const getDatabaseUrl = (entry: ServiceEntry, env: Env): string | undefined => findDatabaseUrl(entry.name, env);

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
  database: ["postgres", "postgresql"],
  bus: ["nats", "tls", "amqp", "amqps", "postgres", "postgresql"],
};

/** All errors in the addresses of the databases of these services. Those of other services do not matter. */
export function findDatabaseErrors(entries: readonly ServiceEntry[], env: Env): string[] {
  const names = entries.map((entry) => variable(entry.name, "DATABASE_URL"));
  const isShared = names.some((name) => !env[name]);
  return [...(isShared ? ["DATABASE_URL"] : []), ...names].flatMap((name) =>
    checkServerUrl(env, name, urlSchemes.database),
  );
}

/** All errors in the settings of the buses of these subjects. */
export function findBusErrors(subjects: readonly Subject[], env: Env): string[] {
  const errors: string[] = [];
  if (subjects.length > 0) readBusKeepMs(env, errors);
  const used = listBuses(env, subjects).map((bus) => bus.variable);
  // Also URLs that are not set: settings beside such a URL have no effect, which is an error.
  const notSet = subjects.flatMap(busVariables).filter((variable) => !env[variable]);
  const variables = new Set([...used, ...notSet].filter((variable) => variable !== "DATABASE_URL"));
  return [...errors, ...[...variables].flatMap((variable) => checkServerUrl(env, variable, urlSchemes.bus))];
}

export const findPortErrors = (ports: readonly Port[], env: Env): string[] =>
  ports.flatMap((port) => checkPort(port, env));

function checkPort(port: Port, env: Env): string[] {
  const highest = 65_535 - opsOffset;
  if (Number.isInteger(port.number) && port.number >= 1 && port.number <= highest) return [];
  return [`${port.variable} is ${JSON.stringify(env[port.variable])} and should be a port from 1 to ${highest}`];
}

/** A URL without password and parameters, for output: `postgres://todoke@db.example:5432/todoke`. */
export const redactUrl = formatServerUrl;
