/**
 * The services of deploy/compose.yaml as processes: the commands and environment files of the containers, with addresses of this
 * machine in place of host names. Keycloak is replaced by the embedded OpenID provider, and the collector by one that only records.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv, promisify } from "node:util";
import { startEngine } from "@todoke/engines";
import { demoUsers, startIdentityProvider } from "@todoke/identity";
import { freePort, until } from "@todoke/kernel/testing";
import { parse } from "yaml";
import { captureOutput, envName } from "./security/serve-all.ts";
import { todoke } from "./service-process.ts";

const run = promisify(execFile);
const deploy = fileURLToPath(new URL("../deploy", import.meta.url));
const psql = fileURLToPath(new URL("psql.ts", import.meta.url));
interface ComposeService {
  readonly command?: readonly string[];
  readonly env_file?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
}
const { services }: { services: Readonly<Record<string, ComposeService>> } = parse(
  readFileSync(join(deploy, "compose.yaml"), "utf8"),
  { merge: true },
);
const served = Object.entries(services).filter(([, { command }]) => command?.[0] === "serve");
const containerSecrets = "/run/secrets/todoke";

export type Composed = Awaited<ReturnType<typeof startComposed>>;

export async function startComposed() {
  await using parts = new AsyncDisposableStack();
  const [postgres, nats, rabbitmq, redis] = await Promise.all(
    (["postgres", "nats", "rabbitmq", "redis"] as const).map(async (name) => parts.use(await startEngine(name))),
  );
  if (!postgres || !nats || !rabbitmq || !redis) throw new Error("an engine is missing");
  const secrets = mkdtempSync(join(tmpdir(), "todoke-composed-"));
  parts.defer(() => rmSync(secrets, { recursive: true }));
  await run(process.execPath, [join(deploy, "compose/make-secrets.ts"), secrets, process.execPath, todoke]);
  writeFileSync(join(secrets, "POSTGRES_PASSWORD"), new URL(postgres.url).password, { mode: 0o600 });
  const readSecret = (name: string) => readFileSync(join(secrets, name), "utf8");

  const ports = new Map<string, number>();
  for (const [name] of served) ports.set(name, await freePort());
  const origin = `http://localhost:${ports.get("gateway-bff")}`;
  const provider = parts.use(
    await startIdentityProvider({
      clients: [
        {
          clientId: "todoke",
          clientSecret: readSecret("OIDC_CLIENT_SECRET"),
          redirectUris: [`${origin}/login/callback`],
        },
      ],
      users: demoUsers,
    }),
  );
  const collector = parts.use(await startCollector());

  /** What a container calls a thing, and what it is here. */
  const names: readonly (readonly [string, string])[] = [
    [containerSecrets, secrets],
    ["@postgres:5432", `@${new URL(postgres.url).host}`],
    ["nats://nats:4222", nats.url],
    ["redis://redis:6379", redis.url],
    ["http://otel-collector:4318", collector.url],
    ["http://keycloak.localhost:8180/realms/todoke", provider.issuer],
    ["http://localhost:8080", origin],
    ["0.0.0.0", "127.0.0.1"], // A test listens on loopback only.
    ...served.map(([name]) => [`http://${name}:${portOf(name)}`, `http://127.0.0.1:${ports.get(name)}`] as const),
  ];
  const localize = (text: string) => names.reduce((result, [from, to]) => result.replaceAll(from, to), text);
  const readEnvFile = (file: string) => parseEnv(localize(readFileSync(join(deploy, file), "utf8")));
  // The broker of the test has a user of its own.
  rmSync(join(secrets, "POINTS_RESERVATION_BUS_URL"));
  writeFileSync(join(secrets, "POINTS_RESERVATION_BUS_URL"), rabbitmq.url);

  const path = { PATH: process.env.PATH };
  const sql = (file: string) => run(process.execPath, [psql, postgres.url, "-v", "ON_ERROR_STOP=1", "-f", file]);
  await sql(join(deploy, "postgres/databases.sql"));
  await sql(join(secrets, "role-passwords.sql"));
  const owner = { ...path, ...readEnvFile("compose/migrate.env") };
  const asOwner = async (...args: readonly string[]) =>
    (await run(process.execPath, [todoke, ...args], { env: owner })).stdout;
  await asOwner(...(services.migrate?.command ?? []));
  const grantRights = readFileSync(join(deploy, "compose/grant-rights.sh"), "utf8")
    .replaceAll("/deploy/postgres", join(deploy, "postgres"))
    .replaceAll(" psql ", ` "${process.execPath}" "${psql}" `);
  await run("sh", ["-c", localize(grantRights)], { env: path });

  const started = await Promise.all(
    served.map(async ([name, { command = [], environment, env_file }]) => {
      const own = { [envName(name, "PORT")]: String(ports.get(name)), ...slowMachine };
      const env = { ...path, ...readEnvFile(String(env_file)), ...environment, ...own };
      const child = spawn(process.execPath, [todoke, ...command], { env, stdio: ["ignore", "pipe", "pipe"] });
      parts.defer(() => stop(child));
      const output = captureOutput(child);
      const isUp = () => output().includes(`http://127.0.0.1:${ports.get(name)}\n`) || hasExited(child);
      await until(`${name} serves`, isUp, { withinMs: 150_000 });
      if (hasExited(child)) throw new Error(`${name} did not start:\n${output()}`);
      return { name, child, output };
    }),
  );
  const all = parts.move();
  return {
    origin,
    rabbitmqUrl: rabbitmq.url,
    collected: collector.collected,
    asOwner,
    serviceUrl: (name: string) => `http://127.0.0.1:${ports.get(name)}`,
    opsUrl: (name: string) => `http://127.0.0.1:${(ports.get(name) ?? 0) + 1_000}`,
    serviceNames: served.map(([name]) => name),
    output: () => started.map(({ output }) => output()).join(""),
    /** Stops all as `docker compose down` does; resolves to the exit codes. */
    async stop() {
      await Promise.all(started.map(({ child }) => stop(child)));
      return Object.fromEntries(started.map(({ name, child }) => [name, child.exitCode]));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The port in a container is the default one: it is published under the same number. */
const portOf = (name: string) => services[name]?.ports?.[0]?.split(":").at(-1);

// A slow machine must not look like an unavailable service.
const slowMachine = {
  LOG_LEVEL: "warn",
  GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
  GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
};

const hasExited = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

async function stop(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return;
  child.kill("SIGTERM");
  await once(child, "close"); // All output has arrived by then.
}

/** An OpenTelemetry collector that remembers which services have sent to which path. */
async function startCollector() {
  const collected = new Set<string>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const text of request.setEncoding("utf8")) body += text;
    for (const [, name] of body.matchAll(/"service\.name","value":\{"stringValue":"([\w-]+)"/g))
      collected.add(`${name} ${request.url}`);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    collected,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
