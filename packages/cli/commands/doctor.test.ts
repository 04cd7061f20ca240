import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { type EngineName, startEngine } from "@todoke/engines";
import { formatSigningKey, formatVerifyingKey, newSigningKey, type SigningKey, toVerifyingKey } from "@todoke/http";
import { openDb } from "@todoke/kernel/db";
import { freePort } from "@todoke/kernel/testing";
import { afterAll, expect, test } from "vitest";
import { checkDatabase } from "../doctor/database.ts";
import type { Finding } from "../doctor/finding.ts";
import { openShell, type Shell } from "../testing/command.ts";

const postgres = await startEngine("postgres");
const nats = await startIfInstalled("nats");
const redis = await startIfInstalled("redis");
const careless = await startIfInstalled("redis", { appendonly: "no", "maxmemory-policy": "allkeys-lru" });
afterAll(async () => {
  for (const engine of [postgres, nats, redis, careless]) await engine?.[Symbol.asyncDispose]();
});

/** PostgreSQL is always here; the others are where `npm test` found or installed them. What is skipped, it tells. */
function startIfInstalled(name: EngineName, settings = {}) {
  return startEngine(name, { settings }).catch(() => undefined);
}

async function examine(shell: Shell, env: Record<string, string>) {
  const { code, out } = await shell.run("doctor --json", env);
  const { healthy, findings }: { healthy: boolean; findings: Finding[] } = JSON.parse(out);
  expect(code).toBe(healthy ? 0 : 1);
  const of = (of: string) => findings.filter((finding) => finding.of === of);
  return { healthy, of, bad: findings.filter((finding) => finding.level !== "ok") };
}

test("on an empty machine there is nothing to complain of, and each line says what will happen instead", async () => {
  await using shell = openShell();
  const { code, out } = await shell.run("doctor", {
    COUNTER_PORT: String(await freePort()),
    POSTGRES_PORT: String(await freePort()),
    OIDC_PROVIDER_PORT: String(await freePort()),
  });
  expect(out).toContain("✓ database   none given; `todoke dev` brings its own\n");
  expect(out).toContain("✓ tokens     no keys given; `todoke dev` makes its own\n");
  expect(out).toMatch(/\n0 faults, \d warnings?, \d+ fine\n$/);
  expect(code).toBe(0);
});

test("a healthy database, schema and issuer are fine in every line", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({});
  const port = String(await freePort());
  const env = { DATABASE_URL: postgres.url, OIDC_ISSUER: issuer.url, COUNTER_PORT: port };
  await shell.run("migrate", env);
  const { of, bad } = await examine(shell, env);
  expect(bad).toEqual([]);
  expect(of("database")).toMatchObject([{ says: expect.stringMatching(/^PostgreSQL 18\.\d+ at postgres:/) }]);
  expect(of("counter")).toMatchObject([{ says: "its schema is up to date" }]);
  expect(of("OpenID")).toMatchObject([{ says: issuer.url }]);
});

test.skipIf(!nats)("a NATS server that answers is fine", async () => {
  await using shell = openShell();
  const { of } = await examine(shell, { EVENT_BUS_URL: nats?.url ?? "" });
  expect(of("bus")[0]).toMatchObject({ level: "ok", says: expect.stringMatching(/^nats-server .* at nats:/) });
});

test.skipIf(!redis)("a Redis that keeps what it is told is fine", async () => {
  await using shell = openShell();
  const { of } = await examine(shell, { REDIS_URL: redis?.url ?? "" });
  expect(of("Redis")).toMatchObject([{ level: "ok", says: expect.stringMatching(/^\d.* at redis:\/\/127/) }]);
  const twice = await examine(shell, { REDIS_URL: redis?.url ?? "", MATCHMAKING_REDIS_URL: "redis://127.0.0.1:1" });
  const [todo, level] = ["Start it, or correct MATCHMAKING_REDIS_URL.", "fault"];
  expect(twice.of("Redis")).toMatchObject([{ level: "ok" }, { level, todo }]);
});

test("a wrong password is told from a missing database and from a server that is not there", async () => {
  await using shell = openShell();
  const wrong = new URL(postgres.url);
  wrong.password = "open-sesame";
  const { of, healthy } = await examine(shell, { DATABASE_URL: wrong.href });
  expect(healthy).toBe(false);
  expect(of("database")).toEqual([
    {
      level: "fault",
      of: "database",
      says: expect.stringContaining(`password authentication failed for user "postgres"`),
      todo: "Correct the password of postgres in the URL.",
    },
  ]);
  expect(JSON.stringify(of("database"))).not.toContain("open-sesame");

  const missing = await examine(shell, { DATABASE_URL: new URL("/nowhere", postgres.url).href });
  expect(missing.of("database")[0]?.todo).toContain(`create database "nowhere"`);

  const away = `127.0.0.1:${await freePort()}`;
  const gone = await examine(shell, { DATABASE_URL: `postgres://${away}/x` });
  expect(gone.of("database")[0]?.todo).toBe(`See that PostgreSQL runs at ${away} and can be reached from here.`);
});

test("a database that forgets at a power cut is a fault, with the statement that mends it", async () => {
  await using shell = openShell();
  const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
  await using careless = await startEngine("postgres", { settings });
  const { of } = await examine(shell, { DATABASE_URL: careless.url });
  const faults = of("database").filter((finding) => finding.level === "fault");
  expect(faults.map((finding) => finding.says)).toEqual([
    "fsync is off: a power cut can lose what was answered",
    "full_page_writes is off: a power cut can lose what was answered",
    "synchronous_commit is off: a power cut can lose what was answered",
  ]);
  expect(faults[0]?.todo).toContain("alter system set fsync = on");
});

test("a user who may not migrate, a schema that is behind and too few connections are told", async () => {
  await using shell = openShell();
  const db = openDb({ url: postgres.url });
  await db.query(`create role guest login password 'guest'`);
  await db.query(`create database guesthouse`);
  await db.end();
  const url = new URL("/guesthouse", postgres.url);
  url.username = "guest";
  url.password = "guest";
  const { of } = await examine(shell, { DATABASE_URL: url.href });
  expect(of("database")).toContainEqual({
    level: "warning",
    of: "database",
    says: "guest may not create schemas in guesthouse, so it cannot migrate",
    todo: '`grant create on database "guesthouse" to "guest";`',
  });
  expect(of("counter")).toEqual([
    { level: "fault", of: "counter", says: "1 migration not run yet", todo: "Run `todoke migrate counter`." },
  ]);
  const crowded = await checkDatabase({ name: "database", url: postgres.url, services: 31 });
  expect(crowded[1]?.says).toBe("max_connections is 300, and one copy of each service may want 310");
});

test("a session that sits in a transaction and keeps dead rows is named", async () => {
  const db = openDb({ url: postgres.url, applicationName: "forgetful", poolMax: 1 });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const client = await db.connect();
  await client.query("begin");
  const { rows } = await client.query("select pg_current_xact_id(), pg_backend_pid() as pid");
  const patient = await checkDatabase({ name: "database", url: postgres.url, services: 1 });
  expect(patient).toHaveLength(1);
  const [, found] = await checkDatabase({ name: "database", url: postgres.url, services: 1, pinnedMsMax: 0 });
  expect(found?.says).toMatch(`session ${rows[0].pid} (forgetful) has sat in a transaction for 0 min`);
  client.release(true);
});

test.each([
  ["nats", "nats"],
  ["amqp", "RabbitMQ"],
])("an event bus that cannot be reached (%s) is a fault", async (scheme) => {
  await using shell = openShell();
  const place = `127.0.0.1:${await freePort()}`;
  const { of } = await examine(shell, { EVENT_BUS_URL: `${scheme}://me:secret@${place}` });
  expect(of("bus")).toMatchObject([{ level: "fault", todo: "Start it, or correct EVENT_BUS_URL." }]);
  expect(of("bus")[0]?.says).toContain(place);
  expect(JSON.stringify(of("bus"))).not.toContain("secret");
});

test("a bus in another PostgreSQL database is examined as a database, and not created", async () => {
  await using shell = openShell();
  const db = openDb({ url: postgres.url });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const { of } = await examine(shell, { EVENT_BUS_URL: postgres.url });
  expect(of("bus")).toMatchObject([{ level: "ok", says: expect.stringMatching(/^PostgreSQL/) }]);
  expect((await db.query("select from pg_namespace where nspname = 'todoke_bus'")).rowCount).toBe(0);
});

test.skipIf(!careless)("a Redis that forgets or drops is warned of; another password is a fault", async () => {
  await using shell = openShell();
  const { of, healthy } = await examine(shell, { REDIS_URL: careless?.url ?? "" });
  expect(healthy).toBe(true);
  expect(of("Redis").slice(1)).toMatchObject([
    { level: "warning", says: "appendonly is off: a restart forgets every session and ticket" },
    { level: "warning", says: "maxmemory-policy is allkeys-lru: under pressure it drops sessions and tickets unasked" },
  ]);

  const url = new URL(careless?.url ?? "");
  url.password = "wrong";
  const refused = await examine(shell, { REDIS_URL: url.href });
  expect(refused.of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("WRONGPASS") }]);
});

test("a Redis that is not there is a fault", async () => {
  await using shell = openShell();
  const away = await examine(shell, { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  expect(away.of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("ECONNREFUSED") }]);
});

test("servers that take a connection and then say nothing are faults too, and hold nobody up", async () => {
  await using shell = openShell();
  const port = await freePort();
  await using _ = createTcpServer((socket) => socket.resume()).listen(port, "127.0.0.1");
  const place = `127.0.0.1:${port}`;
  const { of } = await examine(shell, {
    DATABASE_URL: `postgres://${place}/x`,
    EVENT_BUS_URL: `nats://${place}`,
    REDIS_URL: `redis://${place}`,
    OIDC_ISSUER: `http://${place}`,
  });
  for (const name of ["database", "bus", "Redis", "OpenID"]) {
    expect(of(name), name).toMatchObject([{ level: "fault", says: expect.stringContaining(place) }]);
  }
});

test("something else that answers where Redis should be is not taken for Redis", async () => {
  await using shell = openShell();
  await using web = await startIssuer({});
  const { of } = await examine(shell, { REDIS_URL: web.url.replace("http:", "redis:") });
  expect(of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("it is not Redis") }]);
});

test("an OpenID issuer that calls itself otherwise, or lacks what the gateway needs, is a fault", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({ issuer: "https://id.example", token_endpoint: undefined });
  const { of } = await examine(shell, { OIDC_ISSUER: issuer.url });
  expect(of("OpenID")).toMatchObject([
    { level: "fault", says: "it calls itself https://id.example" },
    { level: "fault", says: "it names no token_endpoint" },
  ]);
  const { of: lost } = await examine(shell, { OIDC_ISSUER: `${issuer.url}/realms/none` });
  expect(lost("OpenID")).toMatchObject([{ level: "fault", says: expect.stringContaining("answers 404") }]);
});

test("an OpenID issuer without keys, or with no way to log out, is told of", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({ jwks_uri: "http://127.0.0.1:1/jwks", end_session_endpoint: undefined });
  const { of } = await examine(shell, { OIDC_ISSUER: issuer.url });
  expect(of("OpenID")).toMatchObject([
    { level: "warning", says: "it cannot be asked to log out" },
    { level: "fault", says: expect.stringContaining("http://127.0.0.1:1/jwks: ") },
  ]);
  await using keyless = await startIssuer({}, []);
  const { of: empty } = await examine(shell, { OIDC_ISSUER: keyless.url });
  expect(empty("OpenID")).toMatchObject([{ level: "fault", says: `there are no keys at ${keyless.url}/jwks` }]);
});

test("a gateway that services would not believe is a fault, with what to add; no key is shown", async () => {
  await using shell = openShell();
  const [mine, other] = [newSigningKey("k1"), newSigningKey("k1")];
  const publicText = (key: SigningKey) => formatVerifyingKey(toVerifyingKey("gateway-bff", key));
  const look = async (env: Record<string, string>) => (await examine(shell, env)).of("tokens");
  const signing = formatSigningKey(mine);

  const fits = { GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: `${publicText(other)},${publicText(mine)}` };
  expect(await look(fits)).toMatchObject([{ level: "ok", says: "signed by gateway-bff.k1, and taken" }]);
  expect(await look({ TODOKE_TOKEN_KEYS: publicText(mine) })).toMatchObject([{ says: "taken from gateway-bff.k1" }]);
  const stranger = await look({ GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: publicText(other) });
  expect(stranger).toEqual([
    {
      level: "fault",
      of: "tokens",
      says: "gateway-bff.k1 is not among TODOKE_TOKEN_KEYS: services will refuse the gateway",
      todo: `Add ${publicText(mine)} to TODOKE_TOKEN_KEYS of every service.`,
    },
  ]);
  expect(await look({ GATEWAY_BFF_TOKEN_KEY: signing })).toMatchObject([{ level: "warning" }]);
  const broken = await look({ GATEWAY_BFF_TOKEN_KEY: "k1=short", TODOKE_TOKEN_KEYS: "k1" });
  expect(broken.map(({ level, says }) => `${level} ${says}`)).toEqual([
    expect.stringMatching(/^fault TODOKE_TOKEN_KEYS: entry 1 should be/),
    expect.stringMatching(/^fault GATEWAY_BFF_TOKEN_KEY should be/),
  ]);
  expect(JSON.stringify([stranger, broken])).not.toContain(signing.slice(3));
});

test("a port that is in use is warned of, with the variable that changes it", async () => {
  await using shell = openShell();
  const port = Number(new URL(postgres.url).port);
  const { of } = await examine(shell, { POSTGRES_PORT: String(port) });
  expect(of("ports")).toContainEqual({
    level: "warning",
    of: "ports",
    says: `${port} (PostgreSQL) is in use`,
    todo: "If not by itself: stop what listens there, or set POSTGRES_PORT to another port.",
  });
});

/** The far side of a port: a discovery document as a provider would serve it. */
async function startIssuer(changes: Record<string, unknown>, keys: readonly object[] = [{ kty: "RSA" }]) {
  const server = createServer((request, reply) => {
    if (request.url === "/jwks") return reply.end(JSON.stringify({ keys }));
    if (request.url !== "/.well-known/openid-configuration") return reply.writeHead(404).end();
    const url = `http://${request.headers.host}`;
    const document = {
      issuer: url,
      authorization_endpoint: `${url}/auth`,
      token_endpoint: `${url}/token`,
      jwks_uri: `${url}/jwks`,
      end_session_endpoint: `${url}/end`,
      code_challenge_methods_supported: ["S256"],
    };
    reply.end(JSON.stringify({ ...document, ...changes }));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
