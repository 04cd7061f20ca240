/** What only this service takes from the environment. */
import { type Env, readProcessedKeepMs, wholeNumbers } from "@todoke/http";

export interface Settings {
  /** Where tickets wait: in the Redis of this address, or in PostgreSQL where there is none. */
  readonly redisUrl?: string;
  /** The rules; without a file, those that come with the service. */
  readonly rulesPath?: string;
  /** How long matches and the ends of tickets are kept. */
  readonly keepMs: number;
  /** How long it is remembered which events were seen. */
  readonly processedKeepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

export function readSettings(env: Env, faults: string[]): Settings {
  const redisUrl = readRedisUrl(env, faults);
  return {
    ...(redisUrl !== undefined && { redisUrl }),
    ...(env.MATCHMAKING_RULES && { rulesPath: env.MATCHMAKING_RULES }),
    keepMs: wholeNumbers(env, faults)("MATCHMAKING_KEEP_DAYS", 30, [1, 3_650]) * dayMs,
    processedKeepMs: readProcessedKeepMs("matchmaking", env, faults),
  };
}

/** Undefined where tickets wait in PostgreSQL. */
function readRedisUrl(env: Env, faults: string[]): string | undefined {
  const variable = env.MATCHMAKING_REDIS_URL ? "MATCHMAKING_REDIS_URL" : "REDIS_URL";
  const url = env[variable];
  const store = env.MATCHMAKING_STORE || (url ? "redis" : "postgres");
  if (store === "postgres") return undefined;
  if (store !== "redis") faults.push("MATCHMAKING_STORE should be postgres or redis");
  else if (!url) faults.push("MATCHMAKING_STORE is redis: REDIS_URL or MATCHMAKING_REDIS_URL should say where it is");
  else if (!/^rediss?:$/.test(URL.parse(url)?.protocol ?? ""))
    faults.push(`${variable} should begin with redis:// or rediss://`);
  return url;
}
