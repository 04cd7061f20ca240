/**
 * Runs every service in this process, on one database and by default an in-memory bus, with users of account who have native
 * sessions at the gateway. Also returns the routes of each service with their access rules.
 */
import { hash, randomBytes } from "node:crypto";
import diagnostics from "node:diagnostics_channel";
import * as account from "@todoke/account";
import * as entitlement from "@todoke/entitlement";
import * as gateway from "@todoke/gateway-bff";
import { type AccessRule, formatSigningKey, formatVerifyingKey, type Role, scopes, toVerifyingKey } from "@todoke/http";
import { type EventBus, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import * as matchmaking from "@todoke/matchmaking";
import * as notification from "@todoke/notification";
import * as orders from "@todoke/orders";
import * as points from "@todoke/points";
import type { BusRequest } from "@todoke/service";
import { servicesDatabase } from "@todoke/service/testing";
import type { ApiDocument } from "./api-faults.ts";
import { signingKey, tokenFor } from "./signing.ts";

const services = { account, entitlement, matchmaking, notification, orders, points, "gateway-bff": gateway } as const;
export type ServiceName = keyof typeof services;

export interface RouteOptions {
  readonly method: string | readonly string[];
  readonly url: string;
  readonly config?: { readonly rule?: AccessRule; readonly inactiveToo?: boolean };
  readonly schema?: { readonly operationId?: string };
}

/** Records the routes of every Fastify app created from now on, in the order of creation. */
function recordRoutes(): RouteOptions[][] {
  const apps: RouteOptions[][] = [];
  diagnostics.subscribe("fastify.initialization", (message) => {
    const { fastify } = message as {
      fastify: { addHook(name: "onRoute", hook: (route: RouteOptions) => void): void };
    };
    const routes: RouteOptions[] = [];
    apps.push(routes);
    fastify.addHook("onRoute", (route) => void routes.push(route));
  });
  return apps;
}

const apps = recordRoutes();

export { signingKey, tokenFor };

/** Each scope has an API key. */
export const keyHolder = (scope: string) => scope.replace(":", "-");
export const apiKeyFor = (scope: string) => `tdk_${keyHolder(scope)}`;

const provider = "https://id.example";
const envName = (name: string, suffix: string) => `${name.toUpperCase().replaceAll("-", "_")}_${suffix}`;

export function settingsFor(databaseUrl: string): Record<string, string> {
  return {
    ...Object.fromEntries(Object.keys(services).map((name) => [envName(name, "PORT"), "0"])),
    ...Object.fromEntries(
      ["LOGIN", "READ", "WRITE", "BULK"].map((name) => [`GATEWAY_BFF_LIMIT_${name}`, "100000/60s"]),
    ),
    GATEWAY_BFF_LIMIT_ADDRESS: "1000000/60s",
    // A slow machine must not look like an unavailable service.
    GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
    GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
    GATEWAY_BFF_PROFILE_TIMEOUT_MS: "60000",
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: scopes
      .map((scope) => `${keyHolder(scope)}=${scope}=${hash("sha256", apiKeyFor(scope), "hex")}`)
      .join(),
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", signingKey)),
    ACCOUNT_ADMINS: `${provider} admin`,
    ACCOUNT_OPERATORS: `${provider} operator`,
    ACCOUNT_VIEWERS: `${provider} viewer`,
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(signingKey),
    GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
    MATCHMAKING_TICKET_SECRET: randomBytes(32).toString("base64url"),
    OIDC_ISSUER: "http://127.0.0.1:1",
    OIDC_CLIENT_ID: "todoke",
  };
}

export interface RunningService {
  readonly name: ServiceName;
  readonly url: string;
  readonly opsUrl: string;
  readonly routes: readonly { readonly method: string; readonly route: RouteOptions }[];
}

export interface StartOptions {
  readonly gateways?: number;
  /** Settings that override the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Opens a bus of a service. */
  readonly openBus?: (name: string, bus: BusRequest) => Promise<EventBus>;
}

const oneMemoryBus = () => {
  const broker = new MemoryBroker();
  return async () => memoryBus(broker);
};

export async function startAll({ gateways = 1, settings = {}, openBus = oneMemoryBus() }: StartOptions = {}) {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase());
  const running: RunningService[] = [];
  let env: Record<string, string> = { ...settingsFor(t.url), ...settings };

  async function startOne(name: ServiceName): Promise<void> {
    const service = services[name];
    const index = apps.length;
    const { url, opsUrl } = parts.use(await service.start(env, { openBus }));
    env = { ...env, [envName(name, "URL")]: url };
    // The first app of a service is its own, the second its ops listener.
    const routes = (apps[index] ?? []).flatMap((route) => [route.method].flat().map((method) => ({ method, route })));
    running.push({ name, url, opsUrl, routes: routes.filter(({ method }) => method !== "HEAD") });
  }
  for (const name of ["account", "entitlement", "notification", "matchmaking", "points", "orders"] as const)
    await startOne(name);
  for (let n = 0; n < gateways; n++) await startOne("gateway-bff");

  const urls = (wanted: ServiceName) => running.filter(({ name }) => name === wanted).map(({ url }) => url);
  const all = parts.move();
  return {
    db: t.db,
    running,
    gateways: urls("gateway-bff"),
    createUser: (subject: string) => createUser(urls("account")[0] ?? "", subject),
    openSession: (user: User) => openSession(t.db, user),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The API document of each service, by its name. */
export async function readDocuments({ running }: { readonly running: readonly RunningService[] }) {
  const read = async ({ name, url }: RunningService) => {
    const path = name === "gateway-bff" ? "/openapi/gateway-bff.json" : "/openapi.json";
    return [name, (await (await fetch(url + path)).json()) as ApiDocument] as const;
  };
  return Object.fromEntries(await Promise.all(running.map(read)));
}

export interface User {
  readonly userId: string;
  readonly roles: readonly Role[];
  readonly version: number;
}

/** Creates a user as a login does. The subject `admin` becomes an admin. */
export async function createUser(accountUrl: string, subject: string): Promise<User> {
  const response = await fetch(`${accountUrl}/identities:resolve`, {
    method: "POST",
    headers: { authorization: `Bearer ${await tokenFor("account")}`, "content-type": "application/json" },
    body: JSON.stringify({ provider, subject }),
  });
  const { user_id: userId, ...user } = (await response.json()) as { user_id: string } & Omit<User, "userId">;
  return { userId, ...user };
}

/** Inserts a native session, as a login would, and returns its token. */
export async function openSession(db: Db, { userId, roles, version }: User): Promise<string> {
  const token = `tds_${randomBytes(32).toString("base64url")}`;
  await db.query(
    `insert into gateway_bff.known_users (user_id, status, roles, account_version) values ($1, 'ACTIVE', $2, $3)
         on conflict (user_id) do nothing`,
    [userId, roles, version],
  );
  await db.query(
    `insert into gateway_bff.sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens,
                                       created_at, last_seen_at, ends_at, authenticated_at)
     values (gen_random_uuid(), $1, $2, 'native', 'i', 's', '', now(), now(), now() + interval '1 hour', now())`,
    [hash("sha256", token, "buffer"), userId],
  );
  return token;
}
