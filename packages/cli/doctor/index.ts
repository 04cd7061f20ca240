/** The whole examination: every check at once, each with an end, the findings in a fixed order. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Holder, livingHolder } from "../data-folder.ts";
import { devEnv } from "../dev-env.ts";
import { keptSecrets } from "../dev-secrets.ts";
import { reasonOf } from "../faults.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { databaseUrlOf, settingFaults, variable } from "../settings.ts";
import { checkBus } from "./bus.ts";
import { checkDatabase } from "./database.ts";
import { about, type Check, type Finding } from "./finding.ts";
import { checkDisk, checkNode, checkPorts } from "./machine.ts";
import { checkMigrations } from "./migrations.ts";
import { checkOidc } from "./oidc.ts";
import { checkRedis } from "./redis.ts";
import { checkTokenKeys } from "./token-keys.ts";

/** Long enough for a server on another continent; one that takes longer has shown its fault. */
const answerMsMax = 5_000;

/** For a check that hears no signal. */
const checkMsMax = 7_000;

export async function examine(given: Env, services: readonly ServiceEntry[]): Promise<Finding[]> {
  const holder = await livingHolder();
  const env = await seenFrom(given, services, holder);
  const checks: [of: string, check: Check][] = [
    ["Node", checkNode],
    ["settings", () => checkSettings(env, services)],
    ...databases(env, services).map(([name, url]): [string, Check] => [
      name,
      () => checkDatabase({ name, url, services: services.length }),
    ]),
    ...services.map((entry): [string, Check] => [entry.name, () => checkMigrations(entry, env)]),
    ["bus", () => checkBus(env)],
    ...redisServers(env).map(([variable, url]): [string, Check] => [
      "Redis",
      (signal) => checkRedis({ variable, url, signal }),
    ]),
    ["OpenID", (signal) => checkOidc(env.OIDC_ISSUER, signal)],
    ["tokens", () => checkTokenKeys(env)],
    ["ports", () => checkPorts(env, services, holder)],
    ["disk", checkDisk],
  ];
  const found = await Promise.all(checks.map(([of, check]) => bounded(of, check)));
  return found.flat();
}

/** As the services of a `todoke dev` that runs here see the environment; where none does, as it is. */
async function seenFrom(given: Env, services: readonly ServiceEntry[], holder: Holder | undefined): Promise<Env> {
  if (given.DATABASE_URL || !holder?.databaseUrl) return given;
  const { databaseUrl, issuer } = holder;
  return devEnv(given, { databaseUrl, issuer, services, secrets: await keptSecrets() });
}

async function checkSettings(env: Env, services: readonly ServiceEntry[]): Promise<Finding[]> {
  const { ok, fault } = about("settings");
  const faults = settingFaults(services, env);
  return faults.length > 0 ? faults.map((says) => fault(says, "Correct it.")) : [ok("can all be read")];
}

/** Each database once, under the first variable that names it. */
function databases(env: Env, services: readonly ServiceEntry[]): [name: string, url: string | undefined][] {
  const named = new Map<string | undefined, string>([[env.DATABASE_URL || undefined, "database"]]);
  for (const entry of services) {
    const url = databaseUrlOf(entry, env);
    if (url && !named.has(url)) named.set(url, `database (${variable(entry.name, "DATABASE_URL")})`);
  }
  return [...named].map(([url, name]) => [name, url]);
}

/** Each Redis once. */
function redisServers({ REDIS_URL, MATCHMAKING_REDIS_URL: own }: Env): [variable: string, url: string | undefined][] {
  const shared: [string, string | undefined] = ["REDIS_URL", REDIS_URL];
  return own && own !== REDIS_URL ? [shared, ["MATCHMAKING_REDIS_URL", own]] : [shared];
}

async function bounded(of: string, check: Check): Promise<readonly Finding[]> {
  const { fault } = about(of);
  const todo = "See that it runs and can be reached from here.";
  const late = sleep(checkMsMax, [fault(`did not answer within ${checkMsMax / 1_000} s`, todo)], { ref: false });
  const asked = check(AbortSignal.timeout(answerMsMax)).catch((error) => [fault(reasonOf(error), todo)]);
  return Promise.race([asked, late]);
}
