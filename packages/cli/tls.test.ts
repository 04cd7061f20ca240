/** TLS to PostgreSQL, NATS and Redis with an own CA, as settings ask for it. RabbitMQ: packages/bus-rabbitmq/own-broker.test.ts. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Engine, startEngine } from "@todoke/engines";
import type { Envelope } from "@todoke/kernel/bus";
import { openDb } from "@todoke/kernel/db";
import { type CertificateFiles, createCa, freePort, until } from "@todoke/kernel/testing";
import { done, openWakeups } from "@todoke/kernel/worker";
import { connectRedis, createScript } from "@todoke/redis";
import { checkServerUrl, type Env, findBus, readServerUrl } from "@todoke/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBus } from "./bus.ts";
import { checkBus } from "./doctor/bus.ts";
import { checkDatabase } from "./doctor/database.ts";
import type { Finding } from "./doctor/finding.ts";
import { checkRedis } from "./doctor/redis.ts";

/** As the services and the command check them. */
const errorsIn = (env: Env): string[] => [
  ...checkServerUrl(env, "DATABASE_URL", ["postgres", "postgresql"]),
  ...checkServerUrl(env, "EVENT_BUS_URL", ["nats", "tls"]),
  ...checkServerUrl(env, "REDIS_URL", ["redis", "rediss"]),
];

const ca = createCa("Todoke test CA");
const otherCa = createCa("Another CA");
const current = ca.issue("current", ["localhost"]);
const expired = ca.issue("expired", ["localhost"], [-48, -24]);
const client = ca.issue("client", []);
const engines = new AsyncDisposableStack();

/** URLs without the files for TLS. The certificates are for localhost. */
const urls = { database: "", nats: "", natsExpired: "", natsMutual: "", redis: "", redisExpired: "", redisMutual: "" };
let postgres: Engine;

beforeAll(async () => {
  const nats = async (settings: string): Promise<string> => {
    const { url } = engines.use(await startEngine("nats", { settings: { tls: `{ ${settings} }` } }));
    return `tls://localhost:${new URL(url).port}`;
  };
  const files = ({ cert, key }: CertificateFiles) => `cert_file: "${cert}", key_file: "${key}"`;
  const redis = async ({ cert, key }: CertificateFiles, clients = "no"): Promise<string> => {
    const port = await freePort();
    const tls = {
      "tls-cert-file": cert,
      "tls-key-file": key,
      "tls-ca-cert-file": ca.file,
      "tls-auth-clients": clients,
    };
    const { url } = engines.use(await startEngine("redis", { settings: { "tls-port": String(port), ...tls } }));
    return `rediss://:${new URL(url).password}@localhost:${port}`;
  };
  postgres = engines.use(await startEngine("postgres"));
  const { password, port } = new URL(postgres.url);
  urls.database = `postgres://postgres:${password}@localhost:${port}/postgres`;
  urls.nats = await nats(files(current));
  urls.natsExpired = await nats(files(expired));
  urls.natsMutual = await nats(`${files(current)}, ca_file: "${ca.file}", verify: true`);
  urls.redis = await redis(current);
  urls.redisExpired = await redis(expired);
  urls.redisMutual = await redis(current, "yes");
  await useCertificate(current);
}, 240_000);

afterAll(async () => {
  await engines.disposeAsync();
  ca[Symbol.dispose]();
  otherCa[Symbol.dispose]();
}, 240_000);

/** PostgreSQL reads its own files only, so it writes them itself. Other databases than "postgres" need TLS. */
async function useCertificate({ cert, key }: CertificateFiles): Promise<void> {
  const db = openDb({ url: postgres.url, poolMax: 1 });
  const write = (file: string, text: string) =>
    db.query(`copy (select unnest(string_to_array('${text}', E'\n'))) to program 'umask 077; cat > ${file}'`);
  await write("server.crt", readFileSync(cert, "utf8"));
  await write("server.key", readFileSync(key, "utf8"));
  await write("pg_hba.conf", "hostssl all all all scram-sha-256\nhostnossl postgres all all scram-sha-256");
  await db.query("alter system set ssl = on");
  await db.query("select pg_reload_conf()");
  await db.end();
}

const byAddress = (url: string): string => url.replace("localhost", "127.0.0.1");

const event: Envelope = {
  eventId: randomUUID(),
  eventType: "EntitlementGranted",
  subject: "entitlement.events",
  aggregateKey: "a",
  occurredAt: new Date().toISOString(),
  headers: {},
  payload: Buffer.from("x"),
};

/** Publishes an event and receives it. */
async function roundTrip(env: Env): Promise<void> {
  const { url = "" } = findBus("entitlement.events", env) ?? {};
  await using bus = await openBus(url, "test");
  expect(await bus.publish([event])).toEqual([done]);
  const received: string[] = [];
  await using _ = await bus.subscribe({
    consumer: "notification",
    subjects: ["entitlement.events"],
    handle: async (deliveries) => {
      received.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
  });
  await until("the event arrives", () => received.includes(event.eventId));
}

test("with the right CA, PostgreSQL is queried, wakes workers and carries events", async () => {
  const env = { DATABASE_URL: urls.database, DATABASE_CA_FILE: ca.file };
  expect(errorsIn(env)).toEqual([]);
  const url = readServerUrl(env, "DATABASE_URL") ?? "";
  const isEncrypted = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
  const db = openDb({ url, poolMax: 1 });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  expect((await db.query(isEncrypted)).rows).toEqual([{ ssl: true }]);
  await using sender = openWakeups({ url });
  await using receiver = openWakeups({ url });
  await Promise.all([sender.listening, receiver.listening]);
  const listeners = `select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'todoke wakeups'`;
  expect((await db.query(listeners)).rows).toEqual([{ ssl: true }]);
  let woken = false;
  receiver.on("topic", () => {
    woken = true;
  });
  sender.signal("topic");
  await until("the other one is woken", () => woken);
  await roundTrip(env);
  expect(await databaseFault(env)).toBeUndefined();
});

test("with the right CA, NATS carries events, with a client certificate where the server asks for one", async () => {
  await roundTrip({ EVENT_BUS_URL: urls.nats, EVENT_BUS_CA_FILE: ca.file });
  const mutual = { EVENT_BUS_URL: urls.natsMutual, EVENT_BUS_CA_FILE: ca.file };
  await roundTrip({ ...mutual, EVENT_BUS_CERT_FILE: client.cert, EVENT_BUS_KEY_FILE: client.key });
});

test("with the right CA, scripts run in Redis", async () => {
  const env = { REDIS_URL: urls.redis, REDIS_CA_FILE: ca.file };
  await using redis = connectRedis({ url: readServerUrl(env, "REDIS_URL") ?? "", onError: () => {} });
  expect(await redis.run(createScript("return 42"), { keys: [], arguments: [] })).toBe(42);
  expect(await redisFault(env)).toBeUndefined();
  const mutual = { REDIS_URL: urls.redisMutual, REDIS_CA_FILE: ca.file };
  expect(await redisFault({ ...mutual, REDIS_CERT_FILE: client.cert, REDIS_KEY_FILE: client.key })).toBeUndefined();
  expect(await redisFault(mutual)).toMatch(/Redis at \S+ asks for a client certificate: set its certificate and key/);
});

const faultOf = (findings: readonly Finding[]): string | undefined => {
  const text = JSON.stringify(findings);
  for (const secret of [urls.database, urls.redis].map((url) => new URL(url).password))
    expect(text).not.toContain(secret);
  return findings.find(({ level }) => level === "fault")?.says;
};
const databaseFault = async (env: Env) => {
  const url = readServerUrl(env, "DATABASE_URL");
  return faultOf(await checkDatabase({ name: "database", variable: "DATABASE_URL", url, services: 0 }));
};
const busFault = async (env: Env) => {
  const bus = findBus("entitlement.events", env);
  return bus && faultOf(await checkBus("bus", bus, env));
};
const redisFault = async (env: Env) => faultOf(await checkRedis("REDIS_URL", readServerUrl(env, "REDIS_URL")));

test("a certificate of an unknown CA is named, with engine, address and what to do", async () => {
  const text =
    /^\S+: .*the certificate of (PostgreSQL|NATS|Redis) at \S+localhost:\d+\S* is not signed by a CA that this process trusts: set its CA file/;
  expect(await databaseFault({ DATABASE_URL: urls.database, DATABASE_CA_FILE: otherCa.file })).toMatch(text);
  expect(await busFault({ EVENT_BUS_URL: urls.nats, EVENT_BUS_CA_FILE: otherCa.file })).toMatch(text);
  expect(await busFault({ EVENT_BUS_URL: urls.nats.replace("tls:", "nats:") })).toMatch(text);
  expect(await redisFault({ REDIS_URL: urls.redis, REDIS_CA_FILE: otherCa.file })).toMatch(text);
});

test("a certificate for another host is named", async () => {
  const text =
    /the certificate of \w+ at \S+127\.0\.0\.1:\d+\S* is for localhost, not 127\.0\.0\.1: connect by a name that it has, or issue it for 127\.0\.0\.1/;
  expect(await databaseFault({ DATABASE_URL: byAddress(urls.database), DATABASE_CA_FILE: ca.file })).toMatch(text);
  expect(await busFault({ EVENT_BUS_URL: byAddress(urls.nats), EVENT_BUS_CA_FILE: ca.file })).toMatch(text);
  expect(await redisFault({ REDIS_URL: byAddress(urls.redis), REDIS_CA_FILE: ca.file })).toMatch(text);
});

test("an expired certificate is named", async () => {
  const text = /the certificate of \w+ at \S+localhost:\d+\S*, or of its CA, has expired by the clock of this machine/;
  expect(await busFault({ EVENT_BUS_URL: urls.natsExpired, EVENT_BUS_CA_FILE: ca.file })).toMatch(text);
  expect(await redisFault({ REDIS_URL: urls.redisExpired, REDIS_CA_FILE: ca.file })).toMatch(text);
  await useCertificate(expired);
  try {
    const env = { DATABASE_URL: urls.database, DATABASE_CA_FILE: ca.file };
    await until("PostgreSQL uses it", async () => (await databaseFault(env)) !== undefined);
    expect(await databaseFault(env)).toMatch(text);
  } finally {
    await useCertificate(current);
  }
});

test("a server that expects TLS, or has none, is named", async () => {
  expect(await databaseFault({ DATABASE_URL: urls.database.replace(/postgres$/, "template1") })).toMatch(
    /PostgreSQL at \S+ accepts only TLS from here: add sslmode=verify-full/,
  );
  expect(await redisFault({ REDIS_URL: urls.redis.replace("rediss:", "redis:") })).toMatch(
    /if it expects TLS there, use rediss:\/\//,
  );
});

test("wrong files are named before anything connects", () => {
  expect(errorsIn({ REDIS_URL: "redis://one", REDIS_CA_FILE: "/nowhere" })).toEqual([
    "REDIS_CA_FILE: /nowhere cannot be read (ENOENT)",
    "REDIS_CA_FILE is set, and REDIS_URL has no TLS: begin it with rediss://",
  ]);
  const bus = { EVENT_BUS_URL: "nats://one:4222,two:4222?replicas=nine&nonsense=1", EVENT_BUS_CERT_FILE: current.cert };
  expect(errorsIn({ ...bus, EVENT_BUS_KEY_FILE: client.key, EVENT_BUS_CA_FILE: client.key })).toEqual([
    expect.stringMatching(/^EVENT_BUS_URL has the parameter nonsense, which NATS does not have: use ca_file, /),
    `EVENT_BUS_CA_FILE: ${client.key} does not contain a certificate in PEM form`,
    `EVENT_BUS_KEY_FILE: ${client.key} is not the key of the certificate in ${current.cert}`,
    'EVENT_BUS_REPLICAS is "nine" and should be a whole number from 1 to 5',
  ]);
  expect(
    errorsIn({ DATABASE_URL: "postgres://u:p@one,two/x?sslmode=disable", DATABASE_CA_FILE: expired.cert }),
  ).toEqual([
    expect.stringMatching(/^DATABASE_CA_FILE: the certificate in \S+ expired on .*: renew it$/),
    "DATABASE_CA_FILE is set, and DATABASE_URL has sslmode=disable: use sslmode=verify-full",
  ]);
  expect(errorsIn({ REDIS_URL: "redis://one,two" })).toEqual([
    "REDIS_URL has several addresses: name the primary of these Sentinels in REDIS_SENTINEL",
  ]);
});
