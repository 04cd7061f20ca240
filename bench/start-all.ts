/** Starts all services in one process, as `npm start` does, on a database and a bus of the bench. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { env as apiKeys } from "./databases.ts";
import { processCpuMicroseconds } from "./process-cpu.ts";

export const services = [
  "gateway-bff",
  "account",
  "entitlement",
  "notification",
  "matchmaking",
  "points",
  "orders",
] as const;
/**
 * Each start takes the next block of ports: roads on several buses run at once. The ops listeners are 1,000 higher. Another
 * bench on this machine has other ports: its services would answer in place of ours.
 */
let nextPort = 23_000 + (process.pid % 40) * 25;
export const command = fileURLToPath(new URL("../packages/cli/todoke.js", import.meta.url));
const startTimeoutMs = 60_000;

export interface AllServices extends AsyncDisposable {
  readonly pid: number;
  urlOf(service: (typeof services)[number]): string;
  cpuMicroseconds(): Promise<number>;
}

/** `todoke dev` without its own database and OpenID provider. Its log goes to a file, as a terminal would slow it down. */
export async function startAll(more: Readonly<Record<string, string>>): Promise<AllServices> {
  const folder = await mkdtemp(join(tmpdir(), "todoke-road-"));
  const log = await open(join(folder, "log"), "w");
  const ports = services.map((name) => [name, nextPort++] as const);
  const portVariables = ports.map(([name, port]) => [`${name.toUpperCase().replaceAll("-", "_")}_PORT`, String(port)]);
  const env = {
    PATH: process.env.PATH ?? "",
    ...Object.fromEntries(portVariables),
    ...apiKeys,
    OIDC_ISSUER: "http://127.0.0.1:9", // Nobody logs in.
    OIDC_CLIENT_ID: "bench",
    OIDC_CLIENT_SECRET: "bench",
    ...more,
  };
  const args = [...(process.env.BENCH_NODE_OPTIONS?.split(" ") ?? []), command, "dev", "--use-database-url"];
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ["ignore", log.fd, log.fd] });
  const exited = once(child, "exit");
  const urlOf = (service: string) => `http://127.0.0.1:${ports.find(([name]) => name === service)?.[1]}`;
  const started: AllServices = {
    pid: child.pid ?? 0,
    urlOf,
    cpuMicroseconds: () => processCpuMicroseconds(child.pid ?? 0),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill("SIGTERM");
      await exited;
      await log.close();
      await rm(folder, { recursive: true });
    },
  };
  const ready = waitUntilReady(services.map(urlOf));
  const isReady = await Promise.race([ready, exited.then(() => false)]);
  if (isReady) return started;
  const text = await readFile(join(folder, "log"), "utf8");
  await started[Symbol.asyncDispose]();
  throw new Error(`the services did not start: ${text.slice(-2_000)}`);
}

export async function waitUntilReady(urls: readonly string[]): Promise<boolean> {
  const isUp = (url: string) =>
    fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
  for (const deadline = performance.now() + startTimeoutMs; performance.now() < deadline; await sleep(100)) {
    if ((await Promise.all(urls.map(isUp))).every(Boolean)) return true;
  }
  return false;
}
