/** Runs the command as a user does: a process in a folder, with an environment, a screen and an end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveProgram, until } from "@todoke/kernel/testing";
import { todoke } from "../cli.ts";
import { printingTo } from "../output.ts";
import { services } from "../services.ts";

export interface Shell extends AsyncDisposable {
  readonly folder: string;
  /** Starts the command and returns at once. */
  start(args: string, env?: Record<string, string>): Screen;
  /** Runs the command to its end. */
  run(args: string, env?: Record<string, string>): Promise<Ended>;
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Screen {
  readonly process: ChildProcess;
  /** Resolves when `text` has been printed; rejects when the command ends without it. */
  shows(text: string): Promise<void>;
  readonly ended: Promise<Ended>;
}

/** Runs the command in this process: for what it prints and does, where no process of its own matters. */
export async function runTodoke(args: string, env: Record<string, string> = {}): Promise<Ended> {
  const printed = { out: "", err: "" };
  const screen = { out: (text: string) => (printed.out += text), err: (text: string) => (printed.err += text) };
  const argv = args.split(" ").filter(Boolean);
  const code = await printingTo(screen, () => todoke({ argv, env, services }));
  return { code, ...printed };
}

/** What can be run: the command itself, the same with the counter for a service, and a mere holder of the folder. */
const programs = {
  todoke: new URL("../todoke.js", import.meta.url),
  counter: new URL("./main.ts", import.meta.url),
  hold: new URL("./hold.ts", import.meta.url),
};

/** A folder of one's own to run commands in. What still runs when it is disposed is killed. */
export function openShell(program: keyof typeof programs = "counter"): Shell {
  const folder = mkdtempSync(join(tmpdir(), "todoke-cli-"));
  const running = new Set<ChildProcess>();
  const start: Shell["start"] = (args, env = {}) => {
    const command = [resolveProgram(programs[program]), ...args.split(" ").filter(Boolean)];
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const child = spawn(process.execPath, command, { cwd: folder, env: { PATH, NODE_COMPILE_CACHE, ...env } });
    running.add(child);
    child.once("exit", () => running.delete(child));
    return watch(child);
  };
  return {
    folder,
    start,
    run: (args, env) => start(args, env).ended,
    async [Symbol.asyncDispose]() {
      for (const child of running) child.kill("SIGKILL");
      // The database of a killed `todoke dev` stops in its own time, and would write into what we remove.
      const postgres = join(folder, ".todoke/postgres/data/postmaster.pid");
      await until("PostgreSQL has stopped", () => !existsSync(postgres));
      rmSync(folder, { recursive: true });
    },
  };
}

function watch(child: ChildProcess): Screen {
  const printed = { out: "", err: "" };
  child.stdout?.setEncoding("utf8").on("data", (text) => (printed.out += text));
  child.stderr?.setEncoding("utf8").on("data", (text) => (printed.err += text));
  const ended = once(child, "close").then(([code]) => ({ code, ...printed }));
  const all = () => printed.out + printed.err;
  return {
    process: child,
    ended,
    async shows(text) {
      let over = false;
      void ended.then(() => {
        over = true;
      });
      await until("", () => over || all().includes(text)).catch(() => {});
      if (!all().includes(text)) throw new Error(`"${text}" was not shown, but:\n${all()}`);
    },
  };
}
