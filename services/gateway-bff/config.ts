/** What only this service takes from the environment. Every fault is a sentence; nothing is guessed, no secret is shown. */
import { newSigningKey, readSigningKey, type SigningKey } from "@todoke/http";
import { type Env, integerReader } from "@todoke/service";
import { type Limits, readLimits } from "./limits/settings.ts";
import { isNativeRedirect } from "./oidc/native-client.ts";
import { isLoopback } from "./oidc/provider-fetch.ts";
import type { SessionSettings } from "./sessions/index.ts";
import type { UpstreamUrls } from "./upstreams/index.ts";

export interface Settings {
  readonly provider: { readonly issuer: string; readonly clientId: string; readonly clientSecret?: string };
  /** What players see in their address bar. */
  readonly origin: string;
  /** Whether that is on this machine only, where cookies go without https. */
  readonly isLoopback: boolean;
  /** Whole addresses and schemes at which log-ins of native clients may end. */
  readonly nativeRedirects: readonly string[];
  /** How old a log-in may be for deleting an account, and for acts of admins. 0: that is not asked. */
  readonly reauthenticateMs: number;
  readonly signingKey: SigningKey;
  readonly sessions: SessionSettings;
  /** Where sessions and limits are; in PostgreSQL, where it is not set. */
  readonly redisUrl?: string;
  readonly limits: Limits;
  /** Of the limiter: where it takes longer, it is as good as away. */
  readonly waitMaxMs: number;
  readonly upstreams: {
    readonly urls: UpstreamUrls;
    readonly timeoutMs: number;
    readonly underWayMax: number;
    readonly waitingMax: number;
  };
  readonly profileTimeoutMs: number;
}

const minuteMs = 60_000;

export function readSettings(env: Env, faults: string[]): Settings {
  const whole = integerReader(env, faults);
  const origin = readOrigin(env, faults);
  const redisUrl = readRedisUrl(env, faults);
  return {
    provider: readProvider(env, faults),
    origin: origin.origin,
    isLoopback: isLoopback(origin),
    nativeRedirects: readNativeRedirects(env, faults),
    reauthenticateMs: whole("GATEWAY_BFF_REAUTHENTICATE_MINUTES", 15, [0, 24 * 60]) * minuteMs,
    signingKey: readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", faults) ?? newSigningKey("none"),
    sessions: {
      idleMs: whole("GATEWAY_BFF_SESSION_IDLE_MINUTES", 30, [1, 24 * 60]) * minuteMs,
      absoluteMs: whole("GATEWAY_BFF_SESSION_HOURS", 12, [1, 24 * 30]) * 60 * minuteMs,
      perUserMax: whole("GATEWAY_BFF_SESSIONS_PER_USER", 10, [1, 100]),
      secrets: readSecrets(env, faults),
    },
    ...(redisUrl !== undefined && { redisUrl }),
    limits: readLimits(env, faults),
    waitMaxMs: whole("GATEWAY_BFF_LIMIT_WAIT_MS", 1_000, [10, 60_000]),
    upstreams: {
      urls: readUpstreams(env, faults),
      timeoutMs: whole("GATEWAY_BFF_UPSTREAM_TIMEOUT_MS", 2_000, [10, 60_000]),
      underWayMax: whole("GATEWAY_BFF_UPSTREAM_CONCURRENCY", 64, [1, 10_000]),
      waitingMax: whole("GATEWAY_BFF_UPSTREAM_WAITING", 128, [0, 100_000]),
    },
    profileTimeoutMs: whole("GATEWAY_BFF_PROFILE_TIMEOUT_MS", 800, [10, 60_000]),
  };
}

function readOrigin(env: Env, faults: string[]): URL {
  const text = env.GATEWAY_BFF_ORIGIN || "http://localhost:8080";
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    faults.push("GATEWAY_BFF_ORIGIN should be what players see, without a path, as https://play.example.com");
  } else if (url.protocol === "http:" && !isLoopback(url)) {
    faults.push("GATEWAY_BFF_ORIGIN should begin with https://: browsers keep a session's cookie for nothing less");
  } else return url;
  return new URL("http://localhost:8080");
}

function readProvider(env: Env, faults: string[]): Settings["provider"] {
  const { OIDC_ISSUER: issuer = "", OIDC_CLIENT_ID: clientId = "", OIDC_CLIENT_SECRET: clientSecret } = env;
  const url = URL.parse(issuer);
  if (!url || !(url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) || url.search || url.hash)
    faults.push("OIDC_ISSUER should be the address of an OpenID provider, as https://login.example.com/realms/todoke");
  if (!clientId) faults.push("OIDC_CLIENT_ID is not set: it should be what the OpenID provider calls this gateway");
  return { issuer, clientId, ...(clientSecret && { clientSecret }) };
}

function readNativeRedirects(env: Env, faults: string[]): string[] {
  const entries = listIn(env.GATEWAY_BFF_NATIVE_REDIRECTS);
  // What could never be let through was meant otherwise.
  for (const entry of entries.filter((each) => !isNativeRedirect(each, [each])))
    faults.push(
      `GATEWAY_BFF_NATIVE_REDIRECTS: ${JSON.stringify(entry)} should be an address, as https://game.example/done, ` +
        "or a scheme of your own with its colon, as com.example.game:",
    );
  return entries;
}

/** Several while one is being replaced: the first encrypts, all decrypt. */
function readSecrets(env: Env, faults: string[]): Buffer[] {
  const texts = listIn(env.GATEWAY_BFF_SECRET);
  const secrets = texts.map((text) => Buffer.from(text, "base64url"));
  if (texts.length === 0 || !texts.every((text) => /^[\w-]{43}$/.test(text)))
    faults.push(
      "GATEWAY_BFF_SECRET should be 32 random bytes in base64url, or several with commas between them: " +
        "`openssl rand 32 | basenc --base64url | tr -d =` makes one",
    );
  return secrets;
}

function readRedisUrl(env: Env, faults: string[]): string | undefined {
  if (!env.REDIS_URL) return undefined;
  if (!/^rediss?:$/.test(URL.parse(env.REDIS_URL)?.protocol ?? ""))
    faults.push("REDIS_URL should begin with redis:// or rediss://");
  return env.REDIS_URL;
}

function readUpstreams(env: Env, faults: string[]): UpstreamUrls {
  const read = (variable: string): URL | undefined => {
    if (!env[variable]) return undefined;
    const url = URL.parse(env[variable]);
    if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url;
    faults.push(`${variable} should be where the service is, without a path, as http://10.0.0.7:8081`);
    return undefined;
  };
  const account = read("ACCOUNT_URL");
  if (!env.ACCOUNT_URL) faults.push("ACCOUNT_URL is not set: nobody could log in");
  return {
    account: account ?? new URL("http://localhost:8081"),
    entitlement: read("ENTITLEMENT_URL"),
    notification: read("NOTIFICATION_URL"),
    matchmaking: read("MATCHMAKING_URL"),
    points: read("POINTS_URL"),
  };
}

const listIn = (text = ""): string[] =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
