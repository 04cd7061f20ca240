/** What only this service takes from the environment. */
import { type Env, integerReader } from "@todoke/service";

export interface Settings {
  /** Where tickets wait: in the Redis of this address, or in PostgreSQL where there is none. */
  readonly redisUrl?: string;
  /** IDs of tickets are made with the first and recognized by any of them. */
  readonly ticketSecrets: readonly Buffer[];
  /** The rules; without a file, those that come with the service. */
  readonly rulesPath?: string;
  /** How long matches and the ends of tickets are kept. */
  readonly keepMs: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

export function readSettings(env: Env, faults: string[]): Settings {
  const redisUrl = readRedisUrl(env, faults);
  return {
    ...(redisUrl !== undefined && { redisUrl }),
    ticketSecrets: readTicketSecrets(env, faults),
    ...(env.MATCHMAKING_RULES && { rulesPath: env.MATCHMAKING_RULES }),
    keepMs: integerReader(env, faults)("MATCHMAKING_KEEP_DAYS", 30, [1, 3_650]) * dayMs,
  };
}

/** Several while one is being replaced. The value is never shown in a fault. */
function readTicketSecrets(env: Env, faults: string[]): Buffer[] {
  const texts = (env.MATCHMAKING_TICKET_SECRET || "").split(",").map((text) => text.trim());
  const given = texts.filter(Boolean);
  if (!given.every((text) => /^[\w-]{43}$/.test(text)))
    faults.push(
      "MATCHMAKING_TICKET_SECRET should be 32 random bytes in base64url, or several with commas between them: " +
        "`openssl rand 32 | basenc --base64url | tr -d =` makes one",
    );
  return given.map((text) => Buffer.from(text, "base64url"));
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
