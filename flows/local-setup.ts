/** All of Todoke as `npm start` runs it, in a folder and on ports of its own: the embedded database, provider and services. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, until } from "@todoke/kernel/testing";
import { todoke } from "./serving.ts";

export interface LocalSetup extends AsyncDisposable {
  /** Where players come in. */
  readonly origin: string;
  /** Of a service, or of its ops listener. */
  urlOf(name: LocalService): string;
  opsUrlOf(name: LocalService): string;
  /** All that it has printed: its logs are there too. */
  printed(): string;
  signal(name: NodeJS.Signals): void;
  readonly exited: Promise<number | null>;
}

const names = ["gateway-bff", "account", "entitlement", "notification", "matchmaking", "points", "orders"] as const;
export type LocalService = (typeof names)[number];

const portOf = (name: string) => `${name.toUpperCase().replaceAll("-", "_")}_PORT`;

export async function startLocalSetup(more: Record<string, string> = {}): Promise<LocalSetup> {
  const folder = mkdtempSync(join(tmpdir(), "todoke-site-"));
  const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()] as const)));
  const child = spawn(process.execPath, [todoke, "dev"], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      ...Object.fromEntries(names.map((name) => [portOf(name), String(ports[name])])),
      POSTGRES_PORT: String(await freePort()),
      OIDC_PROVIDER_PORT: String(await freePort()),
      // A machine that stalls for a moment is no service that is away.
      GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
      GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
      GATEWAY_BFF_PROFILE_TIMEOUT_MS: "60000",
      ...more,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (printed += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  await until("everything runs", () => printed.includes("Ready.") || isOver(), { withinMs: 150_000 });
  if (isOver()) throw new Error(`todoke dev did not start:\n${printed}`);
  return {
    origin: `http://localhost:${ports["gateway-bff"]}`,
    urlOf: (name) => `http://127.0.0.1:${ports[name]}`,
    opsUrlOf: (name) => `http://127.0.0.1:${(ports[name] ?? 0) + 1_000}`,
    printed: () => printed,
    signal: (name) => void child.kill(name),
    exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
      const postgres = join(folder, ".todoke/postgres/data/postmaster.pid");
      await until("PostgreSQL has stopped", () => !existsSync(postgres));
      rmSync(folder, { recursive: true });
    },
  };
}
