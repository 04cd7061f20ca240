/** Runs all checks concurrently, each with a timeout, and returns the findings in a fixed order. */
import { setTimeout as sleep } from "node:timers/promises";
import { allSubjects, type Subject } from "@todoke/service";
import { type DevProcess, findRunningDev } from "../data-folder.ts";
import { devEnv } from "../dev-env.ts";
import { loadSecrets } from "../dev-secrets.ts";
import { formatError } from "../errors.ts";
import { selectServices } from "../select-services.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { findSettingErrors, getDatabaseUrl, listBuses, variable } from "../settings.ts";
import { checkBus } from "./bus.ts";
import { checkDatabase } from "./database.ts";
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

/** Checks the named services and the servers that they use; all if none is named. */
export async function runChecks(
  given: Env,
  all: readonly ServiceEntry[],
  names: readonly string[] = [],
): Promise<Finding[]> {
  const services = selectServices(all, names);
  const uses = (...users: readonly string[]) => names.length === 0 || users.some((name) => names.includes(name));
  const runningDev = await findRunningDev();
  const env = await resolveEnv(given, all, runningDev);
  const checks: [of: string, check: Check][] = [
    ["Node", checkNode],
    ["settings", () => checkSettings(env, services)],
    ...listDatabases(env, services).map(([name, url]): [string, Check] => [
      name,
      () => checkDatabase({ name, url, services: services.length }),
    ]),
    ...services.flatMap((entry): [string, Check][] => [
      [entry.name, () => checkMigrations(entry, env)],
      [entry.name, () => checkWaiting(entry, env)],
    ]),
    ...listBusChecks(env, names.length > 0 ? await listSubjects(services) : allSubjects),
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

async function checkSettings(env: Env, services: readonly ServiceEntry[]): Promise<Finding[]> {
  const { ok, fault } = findingsFor("settings");
  const errors = findSettingErrors(services, env);
  return errors.length > 0 ? errors.map((says) => fault(says, "Correct it.")) : [ok("valid")];
}

/** Each database once, with the first variable that names it. */
function listDatabases(env: Env, services: readonly ServiceEntry[]): [name: string, url: string | undefined][] {
  const named = new Map<string | undefined, string>([[env.DATABASE_URL || undefined, "database"]]);
  for (const entry of services) {
    const url = getDatabaseUrl(entry, env);
    if (url && !named.has(url)) named.set(url, `database (${variable(entry.name, "DATABASE_URL")})`);
  }
  return [...named].map(([url, name]) => [name, url]);
}

async function listSubjects(services: readonly ServiceEntry[]): Promise<readonly Subject[]> {
  const loaded = await Promise.all(services.map((entry) => entry.load()));
  return loaded.flatMap(({ events }) => [...(events?.emits ?? []), ...(events?.consumes ?? [])]);
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
function listRedisChecks({ REDIS_URL, MATCHMAKING_REDIS_URL: own }: Env): [of: string, check: Check][] {
  const shared: [of: string, check: Check] = ["Redis", () => checkRedis("REDIS_URL", REDIS_URL)];
  if (!own || own === REDIS_URL) return [shared];
  return [shared, ["Redis", () => checkRedis("MATCHMAKING_REDIS_URL", own)]];
}

async function runWithTimeout(of: string, check: Check): Promise<readonly Finding[]> {
  const { fault } = findingsFor(of);
  const todo = "Check that it runs and can be reached from here.";
  const late = sleep(checkTimeoutMs, [fault(`no response within ${checkTimeoutMs / 1_000} s`, todo)], { ref: false });
  const result = check(AbortSignal.timeout(requestTimeoutMs)).catch((error) => [fault(formatError(error), todo)]);
  return Promise.race([result, late]);
}
