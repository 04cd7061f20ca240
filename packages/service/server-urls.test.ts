import { expect, test } from "vitest";
import { checkServerUrl, listSettingsBeside, readServerUrl } from "./server-urls.ts";

const redis = ["redis", "rediss"];
const nats = ["nats", "tls"];
const postgres = ["postgres", "postgresql"];

test("a setting beside a URL is a parameter of that URL, and of no other", () => {
  const env = {
    REDIS_URL: "redis://user:p%40ss@one:26379,two:26379/1",
    REDIS_SENTINEL: "main",
    REDIS_SENTINEL_PASSWORD: "a&b",
    EVENT_BUS_URL: "nats://one:4222,two:4222",
    EVENT_BUS_REPLICAS: "3",
    EVENT_BUS_MAX_BYTES: "1000000",
    EVENT_BUS_CREDS_FILE: "/run/nats.creds",
    EVENT_BUS_NAMESPACE: "staging",
    POINTS_RESERVATION_BUS_URL: "amqp://one,two/vhost?heartbeat=5",
    POINTS_RESERVATION_BUS_QUEUES: "points:reservationQueue,notification:notify",
    DATABASE_URL: "postgres://one:5432,two:5432/app",
    DATABASE_DIRECT_URL: "postgres://direct/app",
    DATABASE_DIRECT_CA_FILE: "",
  };
  expect(readServerUrl(env, "REDIS_URL")).toBe(`${env.REDIS_URL}?sentinel=main&sentinel_password=a%26b`);
  expect(readServerUrl(env, "EVENT_BUS_URL")).toBe(
    `${env.EVENT_BUS_URL}?creds_file=%2Frun%2Fnats.creds&replicas=3&max_bytes=1000000&namespace=staging`,
  );
  expect(readServerUrl(env, "POINTS_RESERVATION_BUS_URL")).toBe(
    `${env.POINTS_RESERVATION_BUS_URL}&queues=points%3AreservationQueue%2Cnotification%3Anotify`,
  );
  expect(readServerUrl(env, "DATABASE_URL")).toBe(
    `${env.DATABASE_URL}?direct_url=${encodeURIComponent(env.DATABASE_DIRECT_URL)}`,
  );
  expect(readServerUrl(env, "ENTITLEMENT_DATABASE_URL")).toBeUndefined();
  expect(listSettingsBeside("REDIS_URL")).toContain("REDIS_SENTINEL");
});

test("several addresses are valid for every engine, for Redis with the name of the primary", () => {
  const several = { REDIS_URL: "redis://:secret@one:26379,two:26379" };
  expect(checkServerUrl(several, "REDIS_URL", redis)).toEqual([
    "REDIS_URL has several addresses: name the primary of these Sentinels in REDIS_SENTINEL",
  ]);
  expect(checkServerUrl({ ...several, REDIS_SENTINEL: "main" }, "REDIS_URL", redis)).toEqual([]);
  expect(checkServerUrl({ EVENT_BUS_URL: "nats://one,two:4223" }, "EVENT_BUS_URL", nats)).toEqual([]);
  expect(checkServerUrl({ EVENT_BUS_URL: "amqps://one,[::1]:5671/v" }, "EVENT_BUS_URL", ["amqp", "amqps"])).toEqual([]);
  expect(checkServerUrl({ DATABASE_URL: "postgres://one,two/app" }, "DATABASE_URL", postgres)).toEqual([]);
});

test.each([
  [{ EVENT_BUS_REPLICAS: "6" }, 'EVENT_BUS_REPLICAS is "6" and should be a whole number from 1 to 5'],
  [{ EVENT_BUS_REPLICAS: "two" }, 'EVENT_BUS_REPLICAS is "two" and should be a whole number from 1 to 5'],
  [{ EVENT_BUS_MAX_BYTES: "1GB" }, /^EVENT_BUS_MAX_BYTES is "1GB" and should be a whole number from 1 to/],
  [{ EVENT_BUS_URL: "nats://user:secret@one,,two" }, /^EVENT_BUS_URL is not a URL: it should look like nats:/],
  [
    { EVENT_BUS_URL: "nats://one?sentinel=main" },
    /^EVENT_BUS_URL has the parameter sentinel, which NATS does not have/,
  ],
  [
    { EVENT_BUS_URL: "nats://one?replicas=3", EVENT_BUS_REPLICAS: "3" },
    "EVENT_BUS_REPLICAS is set, and EVENT_BUS_URL has replicas too: keep one",
  ],
  [
    { EVENT_BUS_QUEUES: "points:reservationQueue" },
    "EVENT_BUS_QUEUES is set, and EVENT_BUS_URL is that of NATS, which does not have it: unset it",
  ],
  [
    { EVENT_BUS_URL: "", EVENT_BUS_REPLICAS: "3", EVENT_BUS_QUEUES: "" },
    "EVENT_BUS_REPLICAS is set, and EVENT_BUS_URL is not: unset it",
  ],
])("the fault in %j is named, without the password", (env, fault) => {
  const faults = checkServerUrl({ EVENT_BUS_URL: "nats://user:secret@one", ...env }, "EVENT_BUS_URL", nats);
  expect(faults).toEqual([expect.stringMatching(fault)]);
  expect(faults.join()).not.toContain("secret");
});

test("a standby is no target of a service", () => {
  const check = (wanted: string) =>
    checkServerUrl({ DATABASE_URL: `postgres://one,two/app?target_session_attrs=${wanted}` }, "DATABASE_URL", postgres);
  expect(check("read-write")).toEqual([]);
  expect(check("standby")).toEqual([
    "DATABASE_URL has target_session_attrs=standby: only primary and read-write are supported",
  ]);
});
