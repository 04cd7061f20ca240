import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

function read(env: Record<string, string>) {
  const errors: string[] = [];
  return { settings: readSettings(env, errors), errors };
}

test("the queue is in Redis if there is a URL, else in PostgreSQL, or as MATCHMAKING_STORE says", () => {
  const [shared, own] = ["redis://a:6379", "rediss://b:6379"];
  const urlOf = (env: Record<string, string>) => read(env).settings.redisUrl;
  expect(urlOf({})).toBeUndefined();
  expect(urlOf({ REDIS_URL: shared })).toBe(shared);
  expect(urlOf({ REDIS_URL: shared, MATCHMAKING_REDIS_URL: own })).toBe(own);
  expect(urlOf({ REDIS_URL: shared, MATCHMAKING_STORE: "postgres" })).toBeUndefined();
  expect(read({ MATCHMAKING_STORE: "redis", REDIS_URL: shared }).errors).toEqual([]);
  expect(read({ MATCHMAKING_KEEP_DAYS: "7", MATCHMAKING_RULES: "rules.yaml" }).settings).toEqual({
    ticketSecrets: [],
    rulesPath: "rules.yaml",
    keepMs: 7 * 24 * 3_600_000,
  });
});

test("ticket secrets are 32 bytes each, may be several, and never appear in an error", () => {
  const [one, two] = ["A".repeat(43), "B".repeat(43)];
  const secrets = read({ MATCHMAKING_TICKET_SECRET: `${one}, ${two}` }).settings.ticketSecrets;
  expect(secrets.map((secret) => secret.toString("base64url"))).toEqual([
    one,
    Buffer.from(two, "base64url").toString("base64url"),
  ]);
  for (const bad of ["short", `${one},x`, `${one}=`]) {
    const { errors } = read({ MATCHMAKING_TICKET_SECRET: bad });
    expect(errors).toEqual([expect.stringMatching(/^MATCHMAKING_TICKET_SECRET should be 32 random bytes/)]);
    expect(errors.join()).not.toContain(bad);
  }
});

test("invalid settings are reported together", () => {
  expect(read({ MATCHMAKING_STORE: "disk", MATCHMAKING_KEEP_DAYS: "0" }).errors).toEqual([
    "MATCHMAKING_STORE should be postgres or redis",
    'MATCHMAKING_KEEP_DAYS is "0" and should be a whole number from 1 to 3650',
  ]);
  expect(read({ MATCHMAKING_STORE: "redis" }).errors).toEqual([
    "MATCHMAKING_STORE is redis, so REDIS_URL or MATCHMAKING_REDIS_URL should be set",
  ]);
  expect(read({ MATCHMAKING_REDIS_URL: "localhost:6379" }).errors).toEqual([
    "MATCHMAKING_REDIS_URL is not a URL: it should look like redis://user:password@host:port/name",
  ]);
});
