/**
 * All services in one process, as `todoke serve` runs them, with a database, an OpenID provider and a trace collector, and a
 * secret in every setting that has one. Captures output and traces.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import { startIdentityProvider } from "@todoke/identity";
import { freePort, testDatabase, until } from "@todoke/kernel/testing";
import { todoke } from "../service-process.ts";

export const serviceNames = [
  "account",
  "entitlement",
  "notification",
  "matchmaking",
  "points",
  "orders",
  "gateway-bff",
] as const;
type Name = (typeof serviceNames)[number];

export const envName = (name: string, suffix: string) => `${name.toUpperCase().replaceAll("-", "_")}_${suffix}`;
const newSecret = () => randomBytes(24).toString("base64url");

/** A unique text to search for. */
export const canary = (name: string) => `canary-${name}-${randomBytes(6).toString("hex")}`;

export async function startServing(more: Record<string, string> = {}) {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await testDatabase({ sets: [] }));
  const role = await secretRole(t);
  parts.defer(role.drop);
  const collector = parts.use(await startCollector());
  const ports = Object.fromEntries(
    await Promise.all(serviceNames.map(async (name) => [name, await freePort()] as const)),
  );
  const serviceUrl = (name: Name) => `http://127.0.0.1:${ports[name]}`;
  const origin = `http://localhost:${ports["gateway-bff"]}`;
  const [clientSecret, password, apiKey] = [newSecret(), newSecret(), `tdk_${newSecret()}`];
  const provider = parts.use(
    await startIdentityProvider({
      clients: [{ clientId: "todoke", clientSecret, redirectUris: [`${origin}/login/callback`] }],
      users: ["alice", "admin"].map((username) => ({
        username,
        password,
        name: username,
        email: `${username}@x.example`,
        emailVerified: true,
        locale: "en",
      })),
    }),
  );
  const key = newSigningKey("k1");
  const env: Record<string, string> = {
    ...Object.fromEntries(serviceNames.map((name) => [envName(name, "PORT"), String(ports[name])])),
    ...Object.fromEntries(serviceNames.map((name) => [envName(name, "URL"), serviceUrl(name)])),
    DATABASE_URL: role.url,
    LOG_LEVEL: "debug",
    TODOKE_API_KEYS: `shop=entitlements:write+points:write+orders:write+matchmaking:write+read=${hash("sha256", apiKey, "hex")}`,
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
    // A remote broker has a secret; this one does not exist.
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: "http://127.0.0.1:1",
    ORDERS_BROKER_SECRET: newSecret(),
    ACCOUNT_ADMINS: `${provider.issuer} admin`,
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
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...more,
  };
  const child = spawn(process.execPath, [todoke, "serve", ...serviceNames, "--migrate"], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = captureOutput(child);
  parts.defer(() => stop(child));
  // The last line before the log.
  const lastTableLine = () => /^\s*gateway-bff\s+http\S+\n/m.exec(output());
  await until("all services serve", () => lastTableLine() !== null || hasExited(child));
  if (hasExited(child)) throw new Error(`todoke serve did not start:\n${output()}`);
  const [table, startedAt] = [lastTableLine()?.[0] ?? "", lastTableLine()?.index ?? 0];
  const all = parts.move();
  return {
    env,
    db: t.db,
    origin,
    serviceUrl,
    opsUrl: (name: Name) => `http://127.0.0.1:${(ports[name] ?? 0) + 1_000}`,
    password,
    apiKey,
    role,
    collected: collector.collected,
    output,
    /** The log: complete lines since the services started. */
    logged: () => output().slice(startedAt + table.length, output().lastIndexOf("\n") + 1),
    stop: () => stop(child),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** A database role with a random password. */
async function secretRole(t: Awaited<ReturnType<typeof testDatabase>>) {
  const [name, password] = [`served_${randomBytes(6).toString("hex")}`, newSecret()];
  await t.db.query(`create role ${name} superuser login password '${password}'`);
  const url = Object.assign(new URL(t.url), { username: name, password });
  return {
    password,
    url: url.href,
    /** Forbids logins of the role and ends its connections. */
    async disconnect() {
      await t.db.query(`alter role ${name} nologin`);
      await t.db.query(`select pg_terminate_backend(pid) from pg_stat_activity where usename = $1`, [name]);
    },
    async drop() {
      await t.db.query(`drop owned by ${name} cascade`);
      await t.db.query(`drop role ${name}`);
    },
  };
}

/** An OpenTelemetry collector that stores traces in memory. */
async function startCollector() {
  const collected: string[] = [];
  const server = createServer(async (request, response) => {
    collected.push(await text(request.setEncoding("latin1")));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    collected,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

export function captureOutput({ stdout, stderr }: ChildProcess): () => string {
  let output = "";
  for (const stream of [stdout, stderr]) stream?.setEncoding("utf8").on("data", (text) => (output += text));
  return () => output;
}

const hasExited = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

async function stop(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return;
  child.kill("SIGTERM");
  await once(child, "close"); // All output has arrived by then.
}
