/** The environment of the services under `todoke dev`: the given variables, and defaults for what it has started. */
import { hash } from "node:crypto";
import type { DevSecrets } from "./dev-secrets.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { getProviderPort, getServicePorts, type Port, variable } from "./settings.ts";

/**
 * The API key that `todoke dev` prints. Services accept it only with the embedded database, so it never opens a server with
 * real data.
 */
export const devKey = "tdk_dev";

const devScopes =
  "entitlements:write+points:write+orders:write+orders:read-all+orders:resume+orders:cancel-all+matchmaking:write+read";
const devKeyEntry = `dev=${devScopes}=${hash("sha256", devKey, "hex")}`;

/**
 * URL of the OpenID provider of `todoke dev`. It starts none if OIDC_ISSUER is set or the database is not the embedded one:
 * the printed passwords must not open real data.
 */
export function demoIssuer(given: Env): string | undefined {
  if (given.OIDC_ISSUER || given.DATABASE_URL) return undefined;
  return `http://127.0.0.1:${getProviderPort(given).number}`;
}

/** The demo users who are staff, by the variable that gives them their role. */
const demoStaff = { ACCOUNT_ADMINS: "admin", ACCOUNT_OPERATORS: "olive", ACCOUNT_VIEWERS: "vera" };

export interface DevParts {
  readonly databaseUrl: string;
  /** URL of the provider with the demo users. */
  readonly issuer: string | undefined;
  readonly secrets: DevSecrets;
  readonly services: readonly ServiceEntry[];
}

/** TODOKE_DEV opens /debug. */
export function devEnv(given: Env, { databaseUrl, issuer, secrets, services }: DevParts): Env {
  const { OIDC_CLIENT_SECRET, GATEWAY_BFF_SECRET, GATEWAY_BFF_TOKEN_KEY, TODOKE_TOKEN_KEYS } = secrets;
  const { MATCHMAKING_TICKET_SECRET } = secrets;
  return {
    ...serviceUrls(services, given),
    GATEWAY_BFF_SECRET,
    MATCHMAKING_TICKET_SECRET,
    // A key pair: if one half is given, the other must be given too.
    ...(given.GATEWAY_BFF_TOKEN_KEY || given.TODOKE_TOKEN_KEYS ? {} : { GATEWAY_BFF_TOKEN_KEY, TODOKE_TOKEN_KEYS }),
    ...(issuer && { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "todoke", OIDC_CLIENT_SECRET }),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)),
    ...Object.fromEntries(
      Object.entries(demoStaff).map(([name, subject]) => [
        name,
        joinEntries(given[name], issuer && `${issuer} ${subject}`),
      ]),
    ),
    DATABASE_URL: databaseUrl,
    TODOKE_DEV: "true",
    TODOKE_API_KEYS: joinEntries(given.TODOKE_API_KEYS, given.DATABASE_URL ? undefined : devKeyEntry),
  };
}

const joinEntries = (...entries: (string | undefined)[]): string => entries.filter(Boolean).join(",");

/** The URLs of the services, and of the gateway for browsers. That one uses a host name, because cookies need one. */
function serviceUrls(services: readonly ServiceEntry[], env: Env): Env {
  const ports = services.map((entry) => [entry.name, getServicePorts(entry, env)[0]] as const);
  const gateway = ports.find(([name]) => name === "gateway-bff");
  return {
    ...Object.fromEntries(ports.map(([name, port]) => [variable(name, "URL"), urlOf(port)])),
    ...(gateway && { GATEWAY_BFF_ORIGIN: `http://localhost:${gateway[1].number}` }),
  };
}

/** A listener on all addresses is on loopback too. */
function urlOf({ number, host = "127.0.0.1" }: Port): string {
  const reached = ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${number}`;
}
