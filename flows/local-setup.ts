/** Runs all of Todoke as `npm start` does, in a temporary folder and on free ports; with DEMO_PORT as `npm start -- --demo` does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ControlledProvider } from "@todoke/identity/testing";
import { freePort, until } from "@todoke/kernel/testing";
import { todoke } from "./service-process.ts";

export interface LocalSetup extends AsyncDisposable {
  /** The gateway, as players reach it. */
  readonly origin: string;
  serviceUrl(name: LocalService): string;
  opsUrl(name: LocalService): string;
  /** Everything that it has printed, logs included. */
  output(): string;
  /** Where it runs: its data is in .todoke/. */
  readonly folder: string;
  signal(name: NodeJS.Signals): void;
  readonly exited: Promise<number | null>;
}

const names = ["gateway-bff", "account", "entitlement", "notification", "matchmaking", "points", "orders"] as const;
export type LocalService = (typeof names)[number];

const portVariable = (name: string) => `${name.toUpperCase().replaceAll("-", "_")}_PORT`;

/** Settings that make it use another provider than its own. */
export const loginSettings = ({
  issuer,
  client,
  origin,
  adminSubject,
}: ControlledProvider): Record<string, string> => ({
  OIDC_ISSUER: issuer,
  OIDC_CLIENT_ID: client.clientId,
  OIDC_CLIENT_SECRET: client.clientSecret,
  ACCOUNT_ADMINS: `${issuer} ${adminSubject}`,
  GATEWAY_BFF_PORT: new URL(origin).port,
});

const newFolder = () => mkdtempSync(join(tmpdir(), "todoke-local-"));

/** `folder` is that of a setup that was killed, to start it again. */
export async function startLocalSetup(more: Record<string, string> = {}, folder = newFolder()): Promise<LocalSetup> {
  const portOf = async (name: LocalService) => Number(more[portVariable(name)] ?? (await freePort()));
  const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await portOf(name)] as const)));
  const args = ["dev", ...(more.DATABASE_URL ? ["--use-database-url"] : []), ...(more.DEMO_PORT ? ["--demo"] : [])];
  const child = spawn(process.execPath, [todoke, ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      ...Object.fromEntries(names.map((name) => [portVariable(name), String(ports[name])])),
      POSTGRES_PORT: String(await freePort()),
      OIDC_PROVIDER_PORT: String(await freePort()),
      // A slow machine must not look like an unavailable service.
      GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
      GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
      GATEWAY_BFF_PROFILE_TIMEOUT_MS: "60000",
      ...more,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  await until("everything runs", () => output.includes("Ready.") || hasExited(), { withinMs: 150_000 });
  if (hasExited()) throw new Error(`todoke dev did not start:\n${output}`);
  return {
    origin: `http://localhost:${more.DEMO_PORT ?? ports["gateway-bff"]}`,
    serviceUrl: (name) => `http://127.0.0.1:${ports[name]}`,
    opsUrl: (name) => `http://127.0.0.1:${(ports[name] ?? 0) + 1_000}`,
    output: () => output,
    folder,
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
