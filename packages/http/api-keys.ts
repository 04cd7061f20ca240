/**
 * Back-ends (a purchase service) call with an API key: `Authorization: Bearer tdk_…`.
 *
 * Keys are known here only by their SHA-256. A key names its holder, who is the caller in every idempotency scope, and
 * what the holder may do. Nothing is allowed that no key allows.
 */
import { hash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { forbidden, unauthenticated } from "./problems.ts";

export type Scope = "entitlements:write" | "points:write" | "orders:write" | "read";

const scopes: readonly string[] = ["entitlements:write", "points:write", "orders:write", "read"] satisfies Scope[];

export interface ApiKey {
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Hex. */
  readonly sha256: string;
}

/** Names the caller, or refuses it unless its key has the scope. */
export type Authenticate = (request: FastifyRequest, scope: Scope) => string;

export function apiKeyAuthentication(keys: readonly ApiKey[]): Authenticate {
  const byHash = new Map(keys.map((key) => [key.sha256, key]));
  // Keys that were found by their hash before: no more than there are, and a hash less for every request.
  const met = new Map<string, ApiKey>();

  /** Looked up by its hash: how long that takes tells nothing about any key. */
  function meet(presented: string): ApiKey {
    const key = byHash.get(hash("sha256", presented, "hex"));
    if (!key) throw unauthenticated("this API key is not known");
    met.set(presented, key);
    return key;
  }

  return (request, scope) => {
    const presented = /^bearer ([\x21-\x7e]{1,256})$/i.exec(request.headers.authorization ?? "")?.[1];
    if (!presented) throw unauthenticated("send an API key: Authorization: Bearer tdk_…");
    const key = met.get(presented) ?? meet(presented);
    if (!key.scopes.includes(scope)) throw forbidden(`the API key of ${key.holder} does not have the scope ${scope}`);
    return key.holder;
  };
}

/**
 * For the options of a route: nobody without the scope gets past the headers, so that a stranger learns nothing from
 * how a body is refused. The route finds who it is in `request.caller`.
 */
export const requires = (authenticate: Authenticate, scope: Scope) => ({
  config: { scope },
  onRequest: (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    request.caller = authenticate(request, scope);
    done();
  },
});

export function knowCallers(app: FastifyInstance): void {
  app.decorateRequest("caller", "");
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a caller needs to be let in; see `requires`. */
    scope?: Scope;
  }
  interface FastifyRequest {
    /** Who was let in by `requires`; empty on a route that lets everybody in. */
    caller: string;
  }
}

const entry = /^([a-z0-9][a-z0-9_-]{0,62})=([a-z:+]+)=([0-9a-f]{64})$/;

/** TODOKE_API_KEYS: `holder=scope+scope=sha256` of each key, separated by commas. */
export function readApiKeys(env: Readonly<Record<string, string | undefined>>): { keys: ApiKey[]; faults: string[] } {
  const given = (env.TODOKE_API_KEYS ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter(Boolean);
  const read = given.map(readApiKey);
  const keys = read.filter((each): each is ApiKey => typeof each !== "string");
  const faults = read.filter((each): each is string => typeof each === "string");
  if (given.length === 0) faults.push(`TODOKE_API_KEYS is not set: nobody could call. ${form}`);
  const holders = keys.map((key) => key.holder);
  for (const holder of new Set(holders.filter((each, place) => holders.indexOf(each) !== place))) {
    faults.push(`TODOKE_API_KEYS names ${holder} twice: two holders of one name would share their idempotency keys`);
  }
  return { keys, faults };
}

const form =
  "It holds holder=scope+scope=sha256 for each key, separated by commas; " +
  `scopes are ${scopes.join(", ")}; sha256 is what \`printf %s tdk_… | sha256sum\` prints`;

/** The text is not shown in a fault: somebody may have put the key itself there. */
function readApiKey(text: string, place: number): ApiKey | string {
  const [, holder, granted, sha256] = entry.exec(text) ?? [];
  if (!holder || !granted || !sha256) return `TODOKE_API_KEYS: entry ${place + 1} cannot be read. ${form}`;
  const unknown = granted.split("+").filter((scope) => !scopes.includes(scope));
  if (unknown.length > 0) return `TODOKE_API_KEYS: ${holder} has unknown scopes: ${unknown.join(", ")}. ${form}`;
  return { holder, scopes: granted.split("+") as Scope[], sha256 };
}
