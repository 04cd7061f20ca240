/** Runs all checks concurrently, each with a timeout, and returns the findings in a fixed order. */
import { setTimeout as sleep } from "node:timers/promises";
import { readServerUrl, type Subject } from "@todoke/service";
import { type DevProcess, findRunningDev } from "../data-folder.ts";
import { devEnv } from "../dev-env.ts";
import { loadSecrets } from "../dev-secrets.ts";
import { formatError } from "../errors.ts";
import { findUnknownSettings } from "../known-settings.ts";
import { listSubjects, loadAll, selectServices } from "../select-services.ts";
import type { Env, ServiceEntry } from "../services.ts";
import {
  findBusErrors,
  findDatabaseErrors,
  findPortErrors,
  getServicePorts,
  listBuses,
  variable,
} from "../settings.ts";
import { checkBus } from "./bus.ts";
import { checkDatabase, type DatabaseCheck } from "./database.ts";
import { type Check, type Finding, findingsFor } from "./finding.ts";
import { checkDisk, checkNode, checkPorts } from "./machine.ts";
import { checkMigrations } from "./migrations.ts";
import { checkOidc } from "./oidc.ts";
import { checkRedis } from "./redis.ts";
import { checkTokenKeys } from "./token-keys.ts";
import { checkWaiting } from "./waiting.ts";

/** Long enough for a server on another continent. */
const requestTimeoutMs = 5_000;

/** For checks that ignore the signal. */
const checkTimeoutMs = 7_000;

/** Checks the named services and the servers that they use; those that are configured if none is named. */
export async function runChecks(
  given: Env,
  all: readonly ServiceEntry[],
  names: readonly string[] = [],
): Promise<Finding[]> {
  const runningDev = await findRunningDev();
  const env = await resolveEnv(given, all, runningDev);
  const services = selectServices(all, names, env);
  const subjects = listSubjects(await Promise.all(services.map((entry) => entry.load())));
  const uses = (...users: readonly string[]) => names.length === 0 || users.some((name) => names.includes(name));
  const checks: [of: string, check: Check][] = [
    ["Node", checkNode],
    ["settings", () => checkSettings(env, services, subjects)],
    ...listDatabases(env, services).map((database): [string, Check] => [
      database.name,
      () => checkDatabase({ ...database, services: services.length }),
    ]),
    ...services.flatMap((entry): [string, Check][] => [
      [entry.name, () => checkMigrations(entry, env, { isNamed: names.includes(entry.name) })],
      [entry.name, () => checkWaiting(entry, env)],
    ]),
    ...listBusChecks(env, subjects),
    ...(uses("matchmaking", "gateway-bff") ? listRedisChecks(env) : []),
    ...(uses("gateway-bff") ? [oidcCheck(env)] : []),
    ["tokens", () => checkTokenKeys(env)],
    ["ports", () => checkPorts(env, services, runningDev)],
    ["disk", checkDisk],
  ];
  const found = await Promise.all(checks.map(([of, check]) => runWithTimeout(of, check)));
  return found.flat();
}

/** The environment of the services of the running `todoke dev`; the given one if none runs. */
async function resolveEnv(
  given: Env,
  services: readonly ServiceEntry[],
  runningDev: DevProcess | undefined,
): Promise<Env> {
  if (given.DATABASE_URL || !runningDev?.databaseUrl) return given;
  const { databaseUrl, issuer } = runningDev;
  return devEnv(given, { databaseUrl, issuer, services, secrets: await loadSecrets() });
}

async function checkSettings(
  env: Env,
  services: readonly ServiceEntry[],
  subjects: readonly Subject[],
): Promise<Finding[]> {
  const { ok, warning, fault } = findingsFor("settings");
  const ports = services.map((entry) => getServicePorts(entry, env)[0]);
  const { misspelt, unknown } = findUnknownSettings(await loadAll(services), env);
  const errors = [
    ...findDatabaseErrors(services, env),
    ...findBusErrors(subjects, env),
    ...findPortErrors(ports, env),
    ...misspelt,
  ];
  const warnings = unknown.map((says) => warning(says, "If it is meant as one, correct its name."));
  const faults = errors.map((says) => fault(says, "Correct it."));
  return faults.length + warnings.length > 0 ? [...faults, ...warnings] : [ok("valid")];
}

/** Each database once, with the first variable that names it. */
function listDatabases(env: Env, services: readonly ServiceEntry[]): Omit<DatabaseCheck, "services">[] {
  const all = services.map((entry) => {
    const own = variable(entry.name, "DATABASE_URL");
    const [name, decides] = env[own] ? [`database (${own})`, own] : ["database", "DATABASE_URL"];
    return { name, variable: decides, url: readServerUrl(env, decides) };
  });
  return all.filter(({ url }, index) => all.findIndex((each) => each.url === url) === index);
}

const oidcCheck = (env: Env): [of: string, check: Check] => ["OpenID", (signal) => checkOidc(env.OIDC_ISSUER, signal)];

/** Each bus once. One that only some subjects have is named by its variable. */
function listBusChecks(env: Env, subjects: readonly Subject[]): [of: string, check: Check][] {
  if (subjects.length === 0) return [];
  const buses = listBuses(env, subjects);
  if (buses.length === 0) return [["bus", async () => [findingsFor("bus").ok("in the database")]]];
  return buses.map((bus) => {
    const isShared = ["EVENT_BUS_URL", "DATABASE_URL"].includes(bus.variable);
    const of = isShared ? "bus" : `bus (${bus.variable})`;
    return [of, () => checkBus(of, bus, env)];
  });
}

/** Each Redis once. */
function listRedisChecks(env: Env): [of: string, check: Check][] {
  const url = readServerUrl(env, "REDIS_URL");
  const own = readServerUrl(env, "MATCHMAKING_REDIS_URL");
  const shared: [of: string, check: Check] = ["Redis", () => checkRedis("REDIS_URL", url)];
  if (!own || own === url) return [shared];
  return [shared, ["Redis", () => checkRedis("MATCHMAKING_REDIS_URL", own)]];
}

async function runWithTimeout(of: string, check: Check): Promise<readonly Finding[]> {
  const { fault } = findingsFor(of);
  const todo = "Check that it runs and can be reached from here.";
  const late = sleep(checkTimeoutMs, [fault(`no response within ${checkTimeoutMs / 1_000} s`, todo)], { ref: false });
  const result = check(AbortSignal.timeout(requestTimeoutMs)).catch((error) => [fault(formatError(error), todo)]);
  return Promise.race([result, late]);
}
