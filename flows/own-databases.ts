/**
 * Every service on a database and a role of its own, set up by the commands of docs/guides/one-database-per-service.md: the
 * blocks of the page run in a shell, with the addresses of this test in place of the page's.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startEngine } from "@todoke/engines";
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import { demoUsers, startIdentityProvider } from "@todoke/identity";
import { type Db, openDb } from "@todoke/kernel/db";
import { freePort, until } from "@todoke/kernel/testing";
import { captureOutput, envName, serviceNames } from "./security/serve-all.ts";
import { todoke } from "./service-process.ts";

type ServiceName = (typeof serviceNames)[number];

const root = new URL("../", import.meta.url);
const page = readFileSync(new URL("docs/guides/one-database-per-service.md", root), "utf8");
const [createBlock = "", migrateBlock = "", serveBlock = "", busBlock = ""] = [
  ...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm),
].map(([, block]) => block);

/** Role and database of a service; its schema has the same name without the prefix. */
export const roleOf = (service: string) => `todoke_${service.replaceAll("-", "_")}`;

export type OwnDatabases = Awaited<ReturnType<typeof openOwnDatabases>>;

export async function openOwnDatabases() {
  await using parts = new AsyncDisposableStack();
  const postgres = parts.use(await startEngine("postgres"));
  const nats = parts.use(await startEngine("nats"));
  const admin = openDb({ url: postgres.url });
  parts.defer(() => admin.end());
  const password = randomBytes(16).toString("hex");
  const { env, origin, serviceUrl, opsUrl } = await playerSettings(parts);

  const node = (program: string) => `"${process.execPath}" "${program}"`;
  /** A block of the page as a shell can run it here. */
  const localize = (block: string) =>
    block
      .replaceAll("npm run todoke -- serve", `exec ${node(todoke)} serve`) // Signals go to the services, not to the shell.
      .replaceAll("npm run todoke --", node(todoke))
      .replaceAll(/^psql/gm, node(fileURLToPath(new URL("psql.ts", import.meta.url))))
      .replaceAll("db.example", new URL(postgres.url).host)
      .replaceAll("nats://bus.example:4222", nats.url);
  const start = (block: string, more: Record<string, string> = {}) =>
    spawn("sh", ["-e", "-c", localize(block)], {
      cwd: fileURLToPath(root),
      env: { PATH: process.env.PATH, ADMIN_URL: postgres.url, PGPASSWORD: password, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
  async function run(block: string): Promise<string> {
    const child = start(block);
    const output = captureOutput(child);
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`exit code ${code} of\n${block}\n${output()}`);
    return output();
  }
  const setPassword = async (role: string) => void (await admin.query(`alter role ${role} password '${password}'`));

  await run(createBlock);
  for (const role of serviceNames.map(roleOf)) for (const each of [role, `${role}_owner`]) await setPassword(each);
  const apiKey = /^tdk_\S+/m.exec(await run(migrateBlock))?.[0] ?? "";
  const serving = start(serveBlock, env);
  parts.defer(() => stop(serving));
  const output = captureOutput(serving);
  await until("all services serve", () => /^\s*gateway-bff\s+http\S+\n/m.test(output()) || hasExited(serving), {
    withinMs: 150_000,
  });
  if (hasExited(serving)) throw new Error(`todoke serve did not start:\n${output()}`);

  const urlOf = (role: string, database = role) => {
    const url = Object.assign(new URL(postgres.url), { username: role, password });
    url.pathname = `/${database}`;
    return url.href;
  };
  const all = parts.move();
  return {
    admin,
    origin,
    serviceUrl,
    opsUrl,
    apiKey,
    output,
    urlOf,
    /** A pool with one connection, closed with everything else. */
    open(role: string, database = role): Db {
      const db = openDb({ url: urlOf(role, database), poolMax: 1 });
      all.defer(() => db.end());
      return db;
    },
    /** Runs statements as a role; resolves to the error codes, or to "ok". */
    async attempt({ role, database = role }: { role: string; database?: string }, statements: readonly string[]) {
      const db = openDb({ url: urlOf(role, database), poolMax: 1 });
      const results: [statement: string, result: string][] = [];
      for (const statement of statements)
        results.push([
          statement,
          await db.query(statement).then(
            () => "ok",
            (error) => error.code ?? String(error),
          ),
        ]);
      await db.end();
      return results;
    },
    /** Creates the bus in PostgreSQL as the page says, after it has given the roles a password. */
    async createBus(): Promise<void> {
      const [createLine = "", ...rest] = busBlock.trim().split("\n");
      const owners = migrateBlock.split("\n").filter((line) => line.startsWith("export"));
      await run(createLine);
      for (const role of ["todoke_bus", "todoke_bus_owner"]) await setPassword(role);
      await run([...owners, ...rest].join("\n"));
    },
    async stop(): Promise<number | null> {
      await stop(serving);
      return serving.exitCode;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Ports, an OpenID provider with the demo users, and the secrets of gateway and matchmaking. */
async function playerSettings(parts: AsyncDisposableStack) {
  const ports = Object.fromEntries(
    await Promise.all(serviceNames.map(async (name) => [name, await freePort()] as const)),
  );
  const origin = `http://localhost:${ports["gateway-bff"]}`;
  const clientSecret = randomBytes(24).toString("base64url");
  const clients = [{ clientId: "todoke", clientSecret, redirectUris: [`${origin}/login/callback`] }];
  const provider = parts.use(await startIdentityProvider({ clients, users: demoUsers }));
  const key = newSigningKey("k1");
  const serviceUrl = (name: ServiceName) => `http://127.0.0.1:${ports[name]}`;
  return {
    origin,
    serviceUrl,
    opsUrl: (name: ServiceName) => `http://127.0.0.1:${(ports[name] ?? 0) + 1_000}`,
    env: {
      ...Object.fromEntries(serviceNames.map((name) => [envName(name, "PORT"), String(ports[name])])),
      ...Object.fromEntries(serviceNames.map((name) => [envName(name, "URL"), serviceUrl(name)])),
      LOG_LEVEL: "warn",
      TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
      GATEWAY_BFF_TOKEN_KEY: formatSigningKey(key),
      GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
      MATCHMAKING_TICKET_SECRET: randomBytes(32).toString("base64url"),
      GATEWAY_BFF_ORIGIN: origin,
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: "todoke",
      OIDC_CLIENT_SECRET: clientSecret,
      // A slow machine must not look like an unavailable service.
      GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
      GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
    },
  };
}

const hasExited = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

async function stop(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return;
  child.kill("SIGTERM");
  await once(child, "close"); // All output has arrived by then.
}
