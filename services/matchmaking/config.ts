/** The settings of this service. */
import { readSetting } from "@todoke/http";
import { checkServerUrl, type Env, integerReader, readSecrets, readServerUrl } from "@todoke/service";

export interface Settings {
  /** The Redis with the queue; undefined if the queue is in PostgreSQL. */
  readonly redisUrl?: string;
  /** The first one makes ticket IDs; all of them check IDs. */
  readonly ticketSecrets: readonly Buffer[];
  /** The rules file; undefined for the built-in rules. */
  readonly rulesPath?: string;
  /** Retention of matches, ended tickets and damaged tickets. */
  readonly keepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

export function readSettings(env: Env, errors: string[]): Settings {
  const redisUrl = readRedisUrl(env, errors);
  return {
    ...(redisUrl !== undefined && { redisUrl }),
    ticketSecrets: readSecrets(env, errors, "MATCHMAKING_TICKET_SECRET"),
    ...(env.MATCHMAKING_RULES && { rulesPath: env.MATCHMAKING_RULES }),
    keepMs: integerReader(env, errors)("MATCHMAKING_KEEP_DAYS", 30, [1, 3_650]) * dayMs,
  };
}

function readRedisUrl(env: Env, errors: string[]): string | undefined {
  const variable = env.MATCHMAKING_REDIS_URL ? "MATCHMAKING_REDIS_URL" : "REDIS_URL";
  const url = readServerUrl(env, variable);
  const store = readSetting(env, ["MATCHMAKING_STORE"], url ? "redis" : "postgres");
  if (store === "postgres") return undefined;
  if (store !== "redis") errors.push("MATCHMAKING_STORE should be postgres or redis");
  else if (!url) errors.push("MATCHMAKING_STORE is redis, so REDIS_URL or MATCHMAKING_REDIS_URL should be set");
  else errors.push(...checkServerUrl(env, variable, ["redis", "rediss"]));
  return url;
}
