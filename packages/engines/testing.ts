/** For the tests of this package: owners in processes of their own, and checks of what they leave behind. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { EngineName } from "./index.ts";

/** Rejects, with `what` in the message, if the condition does not hold within a minute. */
export async function waitUntil(what: string, condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`did not become true: ${what}`);
    await delay(10);
  }
}

/** A folder for one test. Other users can enter it, as PostgreSQL must when root runs the test. */
export async function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), "todoke-test-"));
  await chmod(path, 0o755);
  return {
    path,
    entries: () => readdirSync(path),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

const ownerProgram = `
  import { startEngine } from ${JSON.stringify(new URL("./index.ts", import.meta.url).href)};
  const [, name, dir, ignoresSigint] = process.argv;
  if (ignoresSigint) process.on("SIGINT", () => console.log("interrupted"));
  const { pid, url } = await startEngine(name, dir ? { dir } : {});
  console.log(JSON.stringify({ pid, url }));
`;

export interface OwnerOptions {
  /** Folder of its temporary files. */
  readonly tmp: string;
  readonly dir?: string;
  /** It reports a SIGINT and keeps running. */
  readonly ignoresSigint?: boolean;
}

/** Starts a process that leads its own group, as in a terminal, and runs an engine until it is ended. */
export async function startOwner(name: EngineName, { tmp, dir = "", ignoresSigint = false }: OwnerOptions) {
  const args = ["--input-type=module", "--eval", ownerProgram, name, dir, ignoresSigint ? "ignore" : ""];
  const env = { ...process.env, TMPDIR: tmp };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env, detached: true });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, "line");
  const engine: { readonly pid: number; readonly url: string } = JSON.parse(line);

  async function end(signal: NodeJS.Signals): Promise<void> {
    child.kill(signal);
    await exited;
  }
  return {
    ...engine,
    end,
    /** Sends SIGINT to the whole group, as Ctrl-C does. Resolves when the owner, started with `ignoresSigint`, got it. */
    async interruptGroup(): Promise<void> {
      const nextLine = once(lines, "line");
      process.kill(-Number(child.pid), "SIGINT");
      const [line] = await nextLine;
      if (line !== "interrupted") throw new Error(`the owner printed ${line}`);
    },
    [Symbol.asyncDispose]: () => end("SIGKILL"),
  };
}

/** Undefined if it was closed since the folder was read. */
function readLinkIfOpen(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** The addresses on which a process listens, as Linux writes them: "0100007F" is 127.0.0.1. */
export function listeningAddresses(pid: number): string[] {
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((fd) => readLinkIfOpen(`/proc/${pid}/fd/${fd}`));
  const sockets = ["tcp", "tcp6"].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8").split("\n"));
  return sockets
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === "0A" && descriptors.includes(`socket:[${inode}]`))
    .map(([, local = ""]) => local.split(":")[0] ?? "");
}
