/** Runs the programs that npm installed, with their output where the reader sees it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { failed, passed, type Result } from "./result.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));

const binaries = [join(root, "node_modules/.bin"), join(root, "tools/node_modules/.bin")];

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
  /** Where it runs: the root of the repository, by default. */
  readonly cwd?: string;
  /** Where its output goes: to ours, by default. */
  readonly output?: "inherit" | "ignore";
}

/** Resolves with the exit code; When the signal aborts, the program is stopped. */
export async function run([program = "", ...args]: readonly string[], options: RunOptions): Promise<number> {
  options.signal.throwIfAborted();
  const child = spawn(program, args, {
    cwd: options.cwd ?? root,
    stdio: options.output ?? "inherit",
    env: { ...process.env, ...options.env, PATH: [...binaries, process.env.PATH].join(delimiter) },
  });
  const stop = () => child.kill("SIGTERM");
  options.signal.addEventListener("abort", stop);
  const [code] = await once(child, "exit").finally(() => options.signal.removeEventListener("abort", stop));
  return code ?? 1;
}

/** A step that is one command. */
export async function check(command: readonly string[], signal: AbortSignal): Promise<Result> {
  return (await run(command, { signal })) === 0 ? passed : failed;
}
