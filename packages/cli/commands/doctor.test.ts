import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { type EngineName, startEngine, startSentinel } from "@todoke/engines";
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

/** PostgreSQL is always installed; the others only where `npm test` found or installed them. */
function startIfInstalled(name: EngineName, settings = {}) {
  return startEngine(name, { settings }).catch(() => undefined);
}

async function runDoctor(shell: Shell, env: Record<string, string>) {
  const { code, out } = await shell.run("doctor --json", env);
  const { healthy, findings }: { healthy: boolean; findings: Finding[] } = JSON.parse(out);
  expect(code).toBe(healthy ? 0 : 1);
  const of = (of: string) => findings.filter((finding) => finding.of === of);
  return { healthy, of, bad: findings.filter((finding) => finding.level !== "ok") };
}

test("without settings doctor finds no fault and says what the defaults are", async () => {
  await using shell = openShell();
  const { code, out } = await shell.run("doctor", {
    COUNTER_PORT: String(await freePort()),
    POSTGRES_PORT: String(await freePort()),
    OIDC_PROVIDER_PORT: String(await freePort()),
  });
  expect(out).toContain("✓ database   DATABASE_URL is not set; `todoke dev` starts its own\n");
  expect(out).toContain("✓ tokens     no keys set; `todoke dev` creates its own\n");
  expect(out).toMatch(/\n0 faults, \d warnings?, \d+ ok\n$/);
  expect(code).toBe(0);
});

test("a healthy database, schema and issuer are ok", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({});
  const port = String(await freePort());
  const env = { DATABASE_URL: postgres.url, OIDC_ISSUER: issuer.url, COUNTER_PORT: port };
  await shell.run("migrate", env);
  const { of, bad } = await runDoctor(shell, env);
  expect(bad).toEqual([]);
  expect(of("database")).toMatchObject([{ says: expect.stringMatching(/^PostgreSQL 18\.\d+ at postgres:/) }]);
  expect(of("counter")).toMatchObject([{ says: "the schema is up to date" }]);
  expect(of("OpenID")).toMatchObject([{ says: issuer.url }]);
});

test.skipIf(!nats)("a NATS server that responds is ok", async () => {
  await using shell = openShell();
  const { of } = await runDoctor(shell, { EVENT_BUS_URL: nats?.url ?? "" });
  expect(of("bus")[0]).toMatchObject({ level: "ok", says: expect.stringMatching(/^nats-server .* at nats:/) });
});

test.skipIf(!redis)("a durable Redis is ok, and each Redis is checked", async () => {
  await using shell = openShell();
  const { of } = await runDoctor(shell, { REDIS_URL: redis?.url ?? "" });
  expect(of("Redis")).toMatchObject([{ level: "ok", says: expect.stringMatching(/^\d.* at redis:\/\/127/) }]);
  const twice = await runDoctor(shell, { REDIS_URL: redis?.url ?? "", MATCHMAKING_REDIS_URL: "redis://127.0.0.1:1" });
  const [todo, level] = ["Start it, or correct MATCHMAKING_REDIS_URL.", "fault"];
  expect(twice.of("Redis")).toMatchObject([{ level: "ok" }, { level, todo }]);
});

test("a wrong password, a missing database and an unavailable server are different faults", async () => {
  await using shell = openShell();
  const wrong = new URL(postgres.url);
  wrong.password = "open-sesame";
  const { of, healthy } = await runDoctor(shell, { DATABASE_URL: wrong.href });
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

  const missing = await runDoctor(shell, { DATABASE_URL: new URL("/nowhere", postgres.url).href });
  expect(missing.of("database")[0]?.todo).toContain(`create database "nowhere"`);

  const away = `127.0.0.1:${await freePort()}`;
  const gone = await runDoctor(shell, { DATABASE_URL: `postgres://${away}/x` });
  expect(gone.of("database")[0]?.todo).toBe(`Check that PostgreSQL runs at ${away} and can be reached from here.`);
});

test("a database that can lose commits is a fault, with the statement that fixes it", async () => {
  await using shell = openShell();
  const lossy = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
  const settings = { ...lossy, synchronous_standby_names: "two" };
  await using careless = await startEngine("postgres", { settings });
  const { of } = await runDoctor(shell, { DATABASE_URL: careless.url });
  const faults = of("database").filter((finding) => finding.level === "fault");
  expect(faults.map((finding) => finding.says)).toEqual([
    "fsync is off: a power cut can lose committed data",
    "full_page_writes is off: a power cut can lose committed data",
    "synchronous_commit is off: a power cut can lose committed data",
    "commits wait for a standby (synchronous_standby_names is two), and none is connected",
  ]);
  expect(faults[0]?.todo).toContain("alter system set fsync = on");
  const local = await runDoctor(shell, { DATABASE_URL: `${careless.url}?options=-c%20synchronous_commit%3Dlocal` });
  expect(local.of("database").map(({ says }) => says)).toContain(
    "synchronous_commit is local: commits do not wait for the standbys in synchronous_standby_names",
  );
});

test("several servers of which none waits for another are a warning", async () => {
  await using shell = openShell();
  const port = await freePort();
  const several = postgres.url.replace("@", `@127.0.0.1:${port},`);
  const { of, healthy } = await runDoctor(shell, { DATABASE_URL: several });
  expect(healthy).toBe(true);
  expect(of("database").slice(1)).toMatchObject([
    { level: "warning", says: "no commit waits for a standby: a promoted standby may lack answered commands" },
    { level: "warning", says: expect.stringMatching(`^127\\.0\\.0\\.1:${port} cannot be used: .*ECONNREFUSED`) },
  ]);
});

test("missing privileges, missing migrations and too few connections are found", async () => {
  await using shell = openShell();
  const db = openDb({ url: postgres.url });
  await db.query(`create role guest login password 'guest'`);
  await db.query(`create database guesthouse`);
  await db.end();
  const url = new URL("/guesthouse", postgres.url);
  url.username = "guest";
  url.password = "guest";
  const { of } = await runDoctor(shell, { DATABASE_URL: url.href });
  expect(of("database")).toContainEqual({
    level: "ok",
    of: "database",
    says: "guest cannot create schemas in guesthouse: right for a role that serves. Run `todoke migrate` as the owner.",
  });
  expect(of("counter")).toEqual([
    { level: "fault", of: "counter", says: "1 migration not run yet", todo: "Run `todoke migrate counter`." },
  ]);
  const crowded = await checkDatabase({ name: "database", variable: "DATABASE_URL", url: postgres.url, services: 42 });
  expect(crowded[1]?.says).toBe("max_connections is 500, and one process of each service may need 504");
});

test("a session that is idle in a transaction is a warning", async () => {
  const db = openDb({ url: postgres.url, applicationName: "forgetful", poolMax: 1 });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const client = await db.connect();
  await client.query("begin");
  const { rows } = await client.query("select pg_current_xact_id(), pg_backend_pid() as pid");
  const patient = await checkDatabase({ name: "database", variable: "DATABASE_URL", url: postgres.url, services: 1 });
  expect(patient).toHaveLength(1);
  const [, found] = await checkDatabase({
    name: "database",
    variable: "DATABASE_URL",
    url: postgres.url,
    services: 1,
    idleMsMax: 0,
  });
  expect(found?.says).toMatch(`session ${rows[0].pid} (forgetful) has been idle in a transaction for 0 min`);
  client.release(true);
});

test.each([
  ["nats", "nats"],
  ["amqp", "RabbitMQ"],
])("an event bus that cannot be reached (%s) is a fault", async (scheme) => {
  await using shell = openShell();
  const place = `127.0.0.1:${await freePort()}`;
  const { of } = await runDoctor(shell, { EVENT_BUS_URL: `${scheme}://me:secret@${place}` });
  expect(of("bus")).toMatchObject([{ level: "fault", todo: "Start it, or correct EVENT_BUS_URL." }]);
  expect(of("bus")[0]?.says).toContain(place);
  expect(JSON.stringify(of("bus"))).not.toContain("secret");
});

test("a bus of some subjects only is checked too, and named by its variable", async () => {
  await using shell = openShell();
  const place = `127.0.0.1:${await freePort()}`;
  const own = { POINTS_RESERVATION_BUS_URL: `amqp://me:secret@${place}` };
  const { of } = await runDoctor(shell, { EVENT_BUS_URL: postgres.url, ...own });
  expect(of("bus")).toMatchObject([{ level: "ok", says: expect.stringMatching(/^PostgreSQL/) }]);
  expect(of("bus (POINTS_RESERVATION_BUS_URL)")).toMatchObject([
    { level: "fault", todo: "Start it, or correct POINTS_RESERVATION_BUS_URL.", says: expect.stringContaining(place) },
  ]);
});

test("a bus in another PostgreSQL database is checked as a database and not created", async () => {
  await using shell = openShell();
  const server = openDb({ url: postgres.url });
  await server.query(`create database doctor_bus`);
  await server.end();
  const url = new URL("/doctor_bus", postgres.url).href;
  const db = openDb({ url });
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const { of } = await runDoctor(shell, { EVENT_BUS_URL: url });
  expect(of("bus")).toMatchObject([{ level: "ok", says: expect.stringMatching(/^PostgreSQL/) }]);
  expect((await db.query("select from pg_namespace where nspname = 'todoke_bus'")).rowCount).toBe(0);
});

test.skipIf(!careless)("a Redis that can lose data is a warning; a wrong password is a fault", async () => {
  await using shell = openShell();
  const { of, healthy } = await runDoctor(shell, { REDIS_URL: careless?.url ?? "" });
  expect(healthy).toBe(true);
  expect(of("Redis").slice(1)).toMatchObject([
    { level: "warning", says: "appendonly is off: a restart loses every session and ticket" },
    {
      level: "warning",
      says: "maxmemory-policy is allkeys-lru: when memory is full, sessions and tickets are dropped",
    },
  ]);

  const url = new URL(careless?.url ?? "");
  url.password = "wrong";
  const refused = await runDoctor(shell, { REDIS_URL: url.href });
  expect(refused.of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("WRONGPASS") }]);
});

test.skipIf(!redis)("a Redis behind Sentinels that writes without a replica is a warning", async () => {
  await using shell = openShell();
  const { username, password } = new URL((redis?.url ?? "").replace("//:", "//default:"));
  await using sentinel = await startSentinel({ name: "main", url: redis?.url.replace("//:", "//default:") ?? "" });
  const { host, password: sentinelPassword } = new URL(sentinel.url);
  const url = `redis://${username}:${password}@${host}/0?sentinel=main&sentinel_password=${sentinelPassword}`;
  const { of } = await runDoctor(shell, { REDIS_URL: url });
  expect(of("Redis")).toMatchObject([
    { level: "ok" },
    { level: "warning", says: expect.stringMatching(/^min-replicas-to-write is 0: a primary that is cut off goes on/) },
  ]);
});

test.skipIf(!redis)("a Redis that hides its settings is a warning", async () => {
  await using shell = openShell();
  await using hiding = await startEngine("redis", { settings: { "rename-command": 'CONFIG ""' } });
  const { of } = await runDoctor(shell, { REDIS_URL: hiding.url });
  expect(of("Redis")).toMatchObject([
    { level: "ok", says: expect.stringMatching(/^\d.* at redis:/) },
    { level: "warning", says: expect.stringContaining("it does not show its settings (ERR unknown command") },
  ]);
});

test("an unavailable Redis is a fault", async () => {
  await using shell = openShell();
  const away = await runDoctor(shell, { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  expect(away.of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("ECONNREFUSED") }]);
});

test("servers that accept a connection and never respond are faults", async () => {
  await using shell = openShell();
  const port = await freePort();
  await using _ = createTcpServer((socket) => socket.resume()).listen(port, "127.0.0.1");
  const place = `127.0.0.1:${port}`;
  const { of } = await runDoctor(shell, {
    DATABASE_URL: `postgres://${place}/x`,
    EVENT_BUS_URL: `nats://${place}`,
    REDIS_URL: `redis://${place}`,
    OIDC_ISSUER: `http://${place}`,
  });
  for (const name of ["database", "bus", "Redis", "OpenID"]) {
    expect(of(name), name).toMatchObject([{ level: "fault", says: expect.stringContaining(place) }]);
  }
});

test("another server on the port of Redis is a fault", async () => {
  await using shell = openShell();
  await using web = await startIssuer({});
  const { of } = await runDoctor(shell, { REDIS_URL: web.url.replace("http:", "redis:") });
  expect(of("Redis")).toMatchObject([{ level: "fault", says: expect.stringContaining("it is not Redis") }]);
});

test("an OpenID provider with another issuer or without a required endpoint is a fault", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({ issuer: "https://id.example", token_endpoint: undefined });
  const { of } = await runDoctor(shell, { OIDC_ISSUER: issuer.url });
  expect(of("OpenID")).toMatchObject([
    { level: "fault", says: "its issuer is https://id.example" },
    { level: "fault", says: "its configuration lacks token_endpoint" },
  ]);
  const { of: lost } = await runDoctor(shell, { OIDC_ISSUER: `${issuer.url}/realms/none` });
  expect(lost("OpenID")).toMatchObject([{ level: "fault", says: expect.stringContaining("returned 404") }]);
});

test("an OpenID provider without keys is a fault, without a logout endpoint a warning", async () => {
  await using shell = openShell();
  await using issuer = await startIssuer({ jwks_uri: "http://127.0.0.1:1/jwks", end_session_endpoint: undefined });
  const { of } = await runDoctor(shell, { OIDC_ISSUER: issuer.url });
  expect(of("OpenID")).toMatchObject([
    { level: "warning", says: "it has no logout endpoint" },
    { level: "fault", says: expect.stringContaining("http://127.0.0.1:1/jwks: ") },
  ]);
  await using keyless = await startIssuer({}, []);
  const { of: empty } = await runDoctor(shell, { OIDC_ISSUER: keyless.url });
  expect(empty("OpenID")).toMatchObject([{ level: "fault", says: `there are no keys at ${keyless.url}/jwks` }]);
});

test("a gateway key that services do not know is a fault with its fix; no secret is printed", async () => {
  await using shell = openShell();
  const [mine, other] = [newSigningKey("k1"), newSigningKey("k1")];
  const publicText = (key: SigningKey) => formatVerifyingKey(toVerifyingKey("gateway-bff", key));
  const checkTokens = async (env: Record<string, string>) => (await runDoctor(shell, env)).of("tokens");
  const signing = formatSigningKey(mine);

  const fits = { GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: `${publicText(other)},${publicText(mine)}` };
  expect(await checkTokens(fits)).toMatchObject([
    { level: "ok", says: "the gateway signs with gateway-bff.k1, and services accept it" },
  ]);
  expect(await checkTokens({ TODOKE_TOKEN_KEYS: publicText(mine) })).toMatchObject([
    { says: "services accept gateway-bff.k1" },
  ]);
  const stranger = await checkTokens({ GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: publicText(other) });
  expect(stranger).toEqual([
    {
      level: "fault",
      of: "tokens",
      says: "gateway-bff.k1 is not in TODOKE_TOKEN_KEYS: services reject calls of the gateway",
      todo: `Add ${publicText(mine)} to TODOKE_TOKEN_KEYS of every service.`,
    },
  ]);
  expect(await checkTokens({ GATEWAY_BFF_TOKEN_KEY: signing })).toMatchObject([{ level: "warning" }]);
  const broken = await checkTokens({ GATEWAY_BFF_TOKEN_KEY: "k1=short", TODOKE_TOKEN_KEYS: "k1" });
  expect(broken.map(({ level, says }) => `${level} ${says}`)).toEqual([
    expect.stringMatching(/^fault TODOKE_TOKEN_KEYS: entry 1 should be/),
    expect.stringMatching(/^fault GATEWAY_BFF_TOKEN_KEY should be/),
  ]);
  expect(JSON.stringify([stranger, broken])).not.toContain(signing.slice(3));
});

test("a busy port is a warning that names its variable", async () => {
  await using shell = openShell();
  const port = Number(new URL(postgres.url).port);
  const { of } = await runDoctor(shell, { POSTGRES_PORT: String(port) });
  expect(of("ports")).toContainEqual({
    level: "warning",
    of: "ports",
    says: `${port} (PostgreSQL) is in use`,
    todo: "Unless Todoke uses it, stop the process that listens on it, or set POSTGRES_PORT to another port.",
  });
});

/** An OpenID provider that serves a discovery document and keys. */
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
