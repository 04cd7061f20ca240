/**
 * `npm start` with nothing to do: CPU time and memory of every process of the command, measured a minute after its start. A page
 * that several processes share is counted once: a process counts with its proportional set size (PSS).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { clearProgress, round, showProgress } from "./measure.ts";
import { parentOf, processCpuMicroseconds } from "./process-cpu.ts";
import type { Result } from "./report.ts";
import { command, services, waitUntilReady } from "./start-all.ts";

/** After the start, garbage of the start is collected, and PostgreSQL's first vacuum has run. */
const settleMs = 60_000;
const measureMs = 30_000;

export async function idleStart(): Promise<Result> {
  await using running = await startNormally();
  showProgress("npm start at rest");
  await sleep(settleMs);
  const processes = await familyOf(running.pid);
  const cpu = async () =>
    (await Promise.all(processes.map(({ pid }) => processCpuMicroseconds(pid)))).reduce((sum, each) => sum + each, 0);
  const before = await cpu();
  await sleep(measureMs);
  const share = ((await cpu()) - before) / (measureMs * 1_000);
  const memory = await Promise.all((await familyOf(running.pid)).map(readMemory));
  clearProgress();
  const sum = (of: (each: Memory) => boolean) =>
    Math.round(memory.filter(of).reduce((total, { pssKiB }) => total + pssKiB, 0) / 1_024);
  const isServer = ({ name }: Memory) => name === "postgres";
  return {
    title: "`npm start` at rest: all services, the OpenID provider and PostgreSQL",
    figures: [],
    summary: {
      "CPU, % of one core": round(share * 100),
      "memory (PSS), MB": sum(() => true),
      "of Node, MB": sum((each) => !isServer(each)),
      "of PostgreSQL, MB": sum(isServer),
      "processes of PostgreSQL": memory.filter(isServer).length,
    },
    targets: { "CPU, % of one core": "at most 2, aim 1", "memory (PSS), MB": "at most 200, aim 150" },
  };
}

async function startNormally(): Promise<AsyncDisposable & { readonly pid: number }> {
  const folder = await mkdtemp(join(tmpdir(), "todoke-idle-"));
  const log = await open(join(folder, "log"), "w");
  const names = [...services.map((name) => name.toUpperCase().replaceAll("-", "_")), "POSTGRES", "OIDC_PROVIDER"];
  const ports = await freePorts(names.length);
  const env = {
    PATH: process.env.PATH ?? "",
    ...Object.fromEntries(names.map((name, index) => [`${name}_PORT`, String(ports[index])])),
  };
  const child = spawn(process.execPath, [command, "dev"], { cwd: folder, env, stdio: ["ignore", log.fd, log.fd] });
  const exited = once(child, "exit");
  const stop = async () => {
    if (child.exitCode === null) child.kill("SIGTERM");
    await exited;
    await log.close();
    await rm(folder, { recursive: true });
  };
  if (await waitUntilReady(ports.slice(0, services.length).map((port) => `http://127.0.0.1:${port}`)))
    return { pid: child.pid ?? 0, [Symbol.asyncDispose]: stop };
  const text = await readFile(join(folder, "log"), "utf8");
  await stop();
  throw new Error(`npm start did not become ready: ${text.slice(-2_000)}`);
}

/** Ports that are free, and so are those 1,000 higher, for the ops listeners. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = 21_000 + (process.pid % 50) * 15; ports.length < count; port++)
    if ((await isFree(port)) && (await isFree(port + 1_000))) ports.push(port);
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  const isListening = await once(server, "listening").then(
    () => true,
    () => false,
  );
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}

interface Process {
  readonly pid: number;
}

/** The process and all its descendants. */
async function familyOf(root: number): Promise<readonly Process[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const parents = new Map(
    await Promise.all(pids.map(async (pid) => [pid, await parentOf(pid).catch(() => 0)] as const)),
  );
  const isOf = (pid: number): boolean => pid === root || (pid > 1 && isOf(parents.get(pid) ?? 0));
  return pids.filter(isOf).map((pid) => ({ pid }));
}

interface Memory {
  readonly name: string;
  readonly pssKiB: number;
}

async function readMemory({ pid }: Process): Promise<Memory> {
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
  const [name, rollup] = await Promise.all([read("comm"), read("smaps_rollup")]);
  return { name: name.trim(), pssKiB: Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) };
}
