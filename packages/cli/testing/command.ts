/** Runs the command as a user does: as a process, in a folder, with an environment. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveProgram, until } from "@todoke/kernel/testing";
import { todoke } from "../cli.ts";
import { redirectOutput } from "../output.ts";
import { services } from "../services.ts";

export interface Shell extends AsyncDisposable {
  readonly folder: string;
  /** Starts the command and returns at once. */
  start(args: string, env?: Record<string, string>): RunningCommand;
  /** Runs the command to its end. */
  run(args: string, env?: Record<string, string>): Promise<CommandResult>;
}

interface CommandResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunningCommand {
  readonly process: ChildProcess;
  /** Resolves when `text` has been printed, with all output so far; rejects when the command ends without it. */
  untilPrinted(text: string): Promise<string>;
  readonly ended: Promise<CommandResult>;
}

/** Runs the command in this process, which is faster. */
export async function runTodoke(args: string, env: Record<string, string> = {}): Promise<CommandResult> {
  const output = { out: "", err: "" };
  const streams = { out: (text: string) => (output.out += text), err: (text: string) => (output.err += text) };
  const argv = args.split(" ").filter(Boolean);
  const code = await redirectOutput(streams, () => todoke({ argv, env, services }));
  return { code, ...output };
}

/** The command itself, the command with the counter as its only service, and a program that locks the data folder. */
const programs = {
  todoke: new URL("../todoke.js", import.meta.url),
  counter: new URL("./main.ts", import.meta.url),
  lock: new URL("./lock-folder.ts", import.meta.url),
};

/** A temporary folder to run commands in. Disposing it kills the running ones. */
export function openShell(program: keyof typeof programs = "counter"): Shell {
  const folder = mkdtempSync(join(tmpdir(), "todoke-cli-"));
  const running = new Set<ChildProcess>();
  const start: Shell["start"] = (args, env = {}) => {
    const command = [resolveProgram(programs[program]), ...args.split(" ").filter(Boolean)];
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const child = spawn(process.execPath, command, { cwd: folder, env: { PATH, NODE_COMPILE_CACHE, ...env } });
    running.add(child);
    child.once("exit", () => running.delete(child));
    return watchCommand(child);
  };
  return {
    folder,
    start,
    run: (args, env) => start(args, env).ended,
    async [Symbol.asyncDispose]() {
      for (const child of running) child.kill("SIGKILL");
      // The database of a killed `todoke dev` is still stopping, and writes into the folder.
      const postgres = join(folder, ".todoke/postgres/data/postmaster.pid");
      await until("PostgreSQL has stopped", () => !existsSync(postgres));
      rmSync(folder, { recursive: true });
    },
  };
}

function watchCommand(child: ChildProcess): RunningCommand {
  const output = { out: "", err: "" };
  child.stdout?.setEncoding("utf8").on("data", (text) => (output.out += text));
  child.stderr?.setEncoding("utf8").on("data", (text) => (output.err += text));
  const ended = once(child, "close").then(([code]) => ({ code, ...output }));
  const all = () => output.out + output.err;
  return {
    process: child,
    ended,
    async untilPrinted(text) {
      let hasEnded = false;
      void ended.then(() => {
        hasEnded = true;
      });
      await until("", () => hasEnded || all().includes(text)).catch(() => {});
      if (!all().includes(text)) throw new Error(`"${text}" was not printed, but:\n${all()}`);
      return all();
    },
  };
}
