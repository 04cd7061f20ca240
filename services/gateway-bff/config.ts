/** The settings of this service. Every error is a sentence; nothing is guessed, and no secret is shown. */
import { type LimitPolicy, newSigningKey, readList, readSetting, readSigningKey, type SigningKey } from "@todoke/http";
import { checkServerUrl, type Env, integerReader, readSecrets, readServerUrl } from "@todoke/service";
import type { UpstreamName } from "./problems.ts";

export interface Settings {
  readonly provider: { readonly issuer: string; readonly clientId: string; readonly clientSecret?: string };
  /** The origin that players see in their address bar. */
  readonly origin: string;
  /** Whether the origin is on this machine, where cookies do not need https. */
  readonly isLoopback: boolean;
  /** Complete addresses and schemes to which the login of a native client may redirect. */
  readonly nativeRedirects: readonly string[];
  /** The greatest age of a login for deleting an account and for admin actions; 0 allows any age. */
  readonly reauthenticateMs: number;
  readonly signingKey: SigningKey;
  readonly sessions: SessionSettings;
  /** Sessions and limits are in Redis if it is set, else in PostgreSQL. */
  readonly redisUrl?: string;
  readonly limits: Limits;
  /** A limiter that takes longer counts as unavailable. */
  readonly limiterTimeoutMs: number;
  readonly upstreams: {
    readonly urls: UpstreamUrls;
    readonly timeoutMs: number;
    readonly concurrency: number;
    readonly queueMax: number;
  };
  readonly profileTimeoutMs: number;
  /** The orders service, for its API document and its state: players do not call it. */
  readonly ordersUrl: URL | undefined;
}

export interface SessionSettings {
  readonly idleMs: number;
  readonly absoluteMs: number;
  /** With one more, the oldest session ends. */
  readonly perUserMax: number;
  /** AES-256-GCM keys for the provider's tokens, 32 bytes each. The first encrypts, all decrypt. */
  readonly secrets: readonly Buffer[];
}

/** Where each service is; undefined if it is not deployed here. */
export type UpstreamUrls = Readonly<Record<UpstreamName, URL | undefined>> & { readonly account: URL };

/** The quota that a request counts against. */
export type LimitClass = "login" | "logout" | "read" | "write" | "bulk";

export interface Limits {
  /** Per user; per address without a login. */
  readonly classes: Readonly<Record<LimitClass, LimitPolicy>>;
  /** Per address, over all its requests: many players may share one. */
  readonly address: LimitPolicy;
  readonly trustedProxies: number;
  /** Requests of one address that one process serves at a time. */
  readonly inFlightMax: number;
}

const minuteMs = 60_000;

export function readSettings(env: Env, errors: string[]): Settings {
  const integer = integerReader(env, errors);
  const origin = readOrigin(env, errors);
  const redisUrl = readRedisUrl(env, errors);
  const readUrl = urlReader(env, errors);
  return {
    provider: readProvider(env, errors),
    origin: origin.origin,
    isLoopback: isLoopback(origin),
    nativeRedirects: readNativeRedirects(env, errors),
    reauthenticateMs: integer("GATEWAY_BFF_REAUTHENTICATE_MINUTES", 15, [0, 24 * 60]) * minuteMs,
    signingKey: readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", errors) ?? newSigningKey("none"),
    sessions: {
      idleMs: integer("GATEWAY_BFF_SESSION_IDLE_MINUTES", 30, [1, 24 * 60]) * minuteMs,
      absoluteMs: integer("GATEWAY_BFF_SESSION_HOURS", 12, [1, 24 * 30]) * 60 * minuteMs,
      perUserMax: integer("GATEWAY_BFF_SESSIONS_PER_USER", 10, [1, 100]),
      secrets: readSecrets(env, errors, "GATEWAY_BFF_SECRET", { min: 1 }),
    },
    ...(redisUrl !== undefined && { redisUrl }),
    limits: readLimits(env, errors),
    limiterTimeoutMs: integer("GATEWAY_BFF_LIMIT_WAIT_MS", 1_000, [10, 60_000]),
    upstreams: {
      urls: readUpstreams(env, readUrl, errors),
      timeoutMs: integer("GATEWAY_BFF_UPSTREAM_TIMEOUT_MS", 2_000, [10, 60_000]),
      concurrency: integer("GATEWAY_BFF_UPSTREAM_CONCURRENCY", 64, [1, 10_000]),
      queueMax: integer("GATEWAY_BFF_UPSTREAM_QUEUE_MAX", 128, [0, 100_000]),
    },
    profileTimeoutMs: integer("GATEWAY_BFF_PROFILE_TIMEOUT_MS", 800, [10, 60_000]),
    ordersUrl: readUrl("ORDERS_URL"),
  };
}

function readOrigin(env: Env, errors: string[]): URL {
  const text = readSetting(env, ["GATEWAY_BFF_ORIGIN"], "http://localhost:8080");
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    errors.push("GATEWAY_BFF_ORIGIN should be the origin that players see, without a path: https://play.example.com");
  } else if (url.protocol === "http:" && !isLoopback(url)) {
    errors.push("GATEWAY_BFF_ORIGIN should begin with https://: browsers accept a session cookie over https only");
  } else return url;
  return new URL("http://localhost:8080");
}

function readProvider(env: Env, errors: string[]): Settings["provider"] {
  const { OIDC_ISSUER: issuer = "", OIDC_CLIENT_ID: clientId = "", OIDC_CLIENT_SECRET: clientSecret } = env;
  const url = URL.parse(issuer);
  if (!url || !isSecure(url) || url.search || url.hash)
    errors.push("OIDC_ISSUER should be the address of an OpenID provider: https://login.example.com/realms/todoke");
  if (!clientId) errors.push("OIDC_CLIENT_ID is not set: it should be the gateway's client ID at the OpenID provider");
  return { issuer, clientId, ...(clientSecret && { clientSecret }) };
}

/** Names below .localhost are reserved for this machine too (RFC 6761). */
export const isLoopback = ({ hostname }: URL): boolean =>
  /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/** Whether nothing sent there leaves this machine unencrypted. */
export const isSecure = (url: URL): boolean =>
  url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));

function readNativeRedirects(env: Env, errors: string[]): string[] {
  const entries = readList(env.GATEWAY_BFF_NATIVE_REDIRECTS);
  // An entry that does not allow even itself is a mistake.
  for (const entry of entries.filter((each) => !isNativeRedirect(each, [each])))
    errors.push(
      `GATEWAY_BFF_NATIVE_REDIRECTS: ${JSON.stringify(entry)} should be an address, like https://game.example/done, ` +
        "or a private scheme with its colon, like com.example.game:",
    );
  return entries;
}

const redirectMax = 512;

/** `allowed` holds complete addresses, and schemes with their colon: `com.example.game:`. */
export function isNativeRedirect(address: string, allowed: readonly string[]): boolean {
  if (address.length > redirectMax || !/^[\x21-\x5b\x5d-\x7e]+$/.test(address)) return false;
  const url = URL.parse(address);
  if (!url || url.hash || url.username || url.password) return false;
  return isOwnMachine(url) || allowed.includes(address) || (!isWebScheme(url) && allowed.includes(url.protocol));
}

/** By IP address, not by name: a name can be made to resolve to another machine. */
const isOwnMachine = ({ protocol, hostname }: URL): boolean =>
  protocol === "http:" && (hostname === "127.0.0.1" || hostname === "[::1]");

/** A browser opens these itself and could run or send them elsewhere, so none is ever allowed as a whole scheme. */
const isWebScheme = ({ protocol }: URL): boolean =>
  ["http:", "https:", "ws:", "wss:", "ftp:", "file:", "data:", "blob:", "javascript:", "about:"].includes(protocol);

function readRedisUrl(env: Env, errors: string[]): string | undefined {
  errors.push(...checkServerUrl(env, "REDIS_URL", ["redis", "rediss"]));
  return readServerUrl(env, "REDIS_URL");
}

export function readLimits(env: Env, errors: string[]): Limits {
  const policy = (name: string, defaultText: string) => readPolicy(name, defaultText, { env, errors });
  return {
    classes: {
      login: policy("login", "20/60s"),
      // Per identity provider. A third is available at once, because all players may have to log in again together.
      logout: policy("logout", "60000/60s"),
      read: policy("read", "600/60s"),
      write: policy("write", "120/60s"),
      bulk: policy("bulk", "30/60s"),
    },
    address: policy("address", "6000/60s"),
    trustedProxies: integerReader(env, errors)("GATEWAY_BFF_TRUSTED_PROXIES", 0, [0, 16]),
    inFlightMax: integerReader(env, errors)("GATEWAY_BFF_LIMIT_IN_FLIGHT", 500, [1, 100_000]),
  };
}

const quotaMax = 1_000_000;
const windowMaxSeconds = 3_600;

function readPolicy(name: string, defaultText: string, { env, errors }: { env: Env; errors: string[] }): LimitPolicy {
  const variable = `GATEWAY_BFF_LIMIT_${name.toUpperCase()}`;
  const parse = (text: string): LimitPolicy | undefined => {
    const [, quota = 0, seconds = 0] = (/^(\d{1,7})\/(\d{1,4})s$/.exec(text) ?? []).map(Number);
    const isInRange = quota >= 1 && quota <= quotaMax && seconds >= 1 && seconds <= windowMaxSeconds;
    return isInRange ? { name, quota, windowMs: seconds * 1_000 } : undefined;
  };
  const policy = parse(readSetting(env, [variable], defaultText));
  if (policy) return policy;
  errors.push(
    `${variable} is ${JSON.stringify(env[variable])} and should look like ${defaultText}: ` +
      `1 to ${quotaMax} calls in 1 to ${windowMaxSeconds} seconds`,
  );
  return parse(defaultText) as LimitPolicy;
}

const urlReader =
  (env: Env, errors: string[]) =>
  (variable: string): URL | undefined => {
    if (!env[variable]) return undefined;
    const url = URL.parse(env[variable]);
    if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url;
    errors.push(`${variable} should be the address of the service, without a path: http://10.0.0.7:8081`);
    return undefined;
  };

function readUpstreams(env: Env, read: ReturnType<typeof urlReader>, errors: string[]): UpstreamUrls {
  const account = read("ACCOUNT_URL");
  if (!env.ACCOUNT_URL) errors.push("ACCOUNT_URL is not set: without it no user can log in");
  return {
    account: account ?? new URL("http://localhost:8081"),
    entitlement: read("ENTITLEMENT_URL"),
    notification: read("NOTIFICATION_URL"),
    matchmaking: read("MATCHMAKING_URL"),
    points: read("POINTS_URL"),
    orders: read("ORDERS_URL"),
  };
}
