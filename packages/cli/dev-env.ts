/** What services see under `todoke dev`: what was given, and for all else what it has started or made for them. */
import { hash } from "node:crypto";
import type { DevSecrets } from "./dev-secrets.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { portsOf, providerPort, variable } from "./settings.ts";

/**
 * The API key that `todoke dev` prints for trying things out. It is handed to services only where the database is the
 * embedded one: a server with data that matters never accepts it.
 */
export const devKey = "tdk_dev";

const devScopes = "entitlements:write+points:write+orders:write+orders:read-all+orders:resume+matchmaking:write+read";
const devKeyEntry = `dev=${devScopes}=${hash("sha256", devKey, "hex")}`;

/**
 * Where the OpenID provider of `todoke dev` is. There is none where another is named, nor, as with the key, where the
 * database is not the embedded one: whoever knows the printed passwords must not get at data that matters.
 */
export function demoIssuer(given: Env): string | undefined {
  if (given.OIDC_ISSUER || given.DATABASE_URL) return undefined;
  return `http://127.0.0.1:${providerPort(given).number}`;
}

/** Which of the demo users may administer. */
const demoAdmin = "admin";

export interface DevParts {
  readonly databaseUrl: string;
  /** Of the provider with the demo users. */
  readonly issuer: string | undefined;
  readonly secrets: DevSecrets;
  readonly services: readonly ServiceEntry[];
}

/** TODOKE_DEV opens the debug surfaces. */
export function devEnv(given: Env, { databaseUrl, issuer, secrets, services }: DevParts): Env {
  const { OIDC_CLIENT_SECRET, GATEWAY_BFF_SECRET, GATEWAY_BFF_TOKEN_KEY, TODOKE_TOKEN_KEYS } = secrets;
  const { MATCHMAKING_TICKET_SECRET } = secrets;
  return {
    ...addressesOf(services, given),
    GATEWAY_BFF_SECRET,
    MATCHMAKING_TICKET_SECRET,
    // The two halves of a pair: with either given, both are the giver's business.
    ...(given.GATEWAY_BFF_TOKEN_KEY || given.TODOKE_TOKEN_KEYS ? {} : { GATEWAY_BFF_TOKEN_KEY, TODOKE_TOKEN_KEYS }),
    ...(issuer && { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "todoke", OIDC_CLIENT_SECRET }),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)),
    ACCOUNT_ADMINS: listed(given.ACCOUNT_ADMINS, issuer && `${issuer} ${demoAdmin}`),
    DATABASE_URL: databaseUrl,
    TODOKE_DEV: "true",
    TODOKE_API_KEYS: listed(given.TODOKE_API_KEYS, given.DATABASE_URL ? undefined : devKeyEntry),
  };
}

const listed = (...entries: (string | undefined)[]): string => entries.filter(Boolean).join(",");

/** Where services find each other, and where browsers find the gateway: cookies are kept for a name, not for a number. */
function addressesOf(services: readonly ServiceEntry[], env: Env): Env {
  const ports = services.map((entry) => [entry.name, portsOf(entry, env)[0].number] as const);
  const gateway = ports.find(([name]) => name === "gateway-bff");
  return {
    ...Object.fromEntries(ports.map(([name, port]) => [variable(name, "URL"), `http://127.0.0.1:${port}`])),
    ...(gateway && { GATEWAY_BFF_ORIGIN: `http://localhost:${gateway[1]}` }),
  };
}
