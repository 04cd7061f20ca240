/** What the tests of this package share: owners that are programs of their own, and a look at what is left of them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { EngineName } from "./index.ts";

/** Rejects, with `what` in the message, when it does not come true within a minute. */
export async function becomes(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what}`);
    await delay(10);
  }
}

/** A folder for one test; others may walk through it, as PostgreSQL does when root runs the test. */
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
  const [, name, dir, deaf] = process.argv;
  if (deaf) process.on("SIGINT", () => console.log("interrupted"));
  const { pid, url } = await startEngine(name, dir ? { dir } : {});
  console.log(JSON.stringify({ pid, url }));
`;

export interface OwnerOptions {
  /** Where it keeps its temporary files. */
  readonly tmp: string;
  readonly dir?: string;
  /** It hears a SIGINT, and goes on. */
  readonly deaf?: boolean;
}

/** Another process, the first of a group as in a terminal, which starts an engine and keeps it until somebody ends it. */
export async function startOwner(name: EngineName, { tmp, dir = "", deaf = false }: OwnerOptions) {
  const args = ["--input-type=module", "--eval", ownerProgram, name, dir, deaf ? "deaf" : ""];
  const env = { ...process.env, TMPDIR: tmp };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env, detached: true });
  const gone = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, "line");
  const engine: { readonly pid: number; readonly url: string } = JSON.parse(line);

  async function end(signal: NodeJS.Signals): Promise<void> {
    child.kill(signal);
    await gone;
  }
  return {
    ...engine,
    end,
    /** A Ctrl-C goes to the whole group. Resolves when the owner, who must be deaf to it, has heard it. */
    async interruptGroup(): Promise<void> {
      const heard = once(lines, "line");
      process.kill(-Number(child.pid), "SIGINT");
      const [said] = await heard;
      if (said !== "interrupted") throw new Error(`the owner says ${said}`);
    },
    [Symbol.asyncDispose]: () => end("SIGKILL"),
  };
}

/** Nothing where it was closed since the folder was read. */
function linkOf(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** The addresses on which a process listens, as Linux writes them: "0100007F" is 127.0.0.1. */
export function listeningAddresses(pid: number): string[] {
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const sockets = ["tcp", "tcp6"].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8").split("\n"));
  return sockets
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === "0A" && descriptors.includes(`socket:[${inode}]`))
    .map(([, local = ""]) => local.split(":")[0] ?? "");
}
