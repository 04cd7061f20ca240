/**
 * The keeper: a small process that stands between an owner (a test run, a bench, `npm start`) and its engine.
 *
 * It starts what the owner orders, and when the owner goes, it stops all of that and removes the folders entrusted to
 * it. There is one way to go, a closed channel, and it is the same for a dispose, a Ctrl-C, an exception and a kill -9:
 * the system closes the channel for whoever cannot. So nothing has to be remembered on the way out.
 *
 * A program of its own: keep.ts starts it; nobody imports more than its types.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { killTree } from "./process-tree.ts";

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: an engine inherits no settings from whoever started it. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Whom to run it as, when not as ourselves. */
  readonly as?: Account;
  /** How to ask it to stop. SIGKILL spares it the trouble: for data that is thrown away anyway. */
  readonly stop: NodeJS.Signals;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type Order = { readonly remove: string } | { readonly id: number; readonly run: Command };

export type Report =
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly refused: string }
  | { readonly id: number; readonly exit: Exit };

/** A server that was asked to stop gets this long to write down what it must. PostgreSQL's last checkpoint is the longest. */
const graceMs = 30_000;

const entrusted: string[] = [];
const started: { readonly child: ChildProcess; readonly stop: NodeJS.Signals }[] = [];

function obey(order: Order): void {
  if ("remove" in order) entrusted.push(order.remove);
  else run(order.id, order.run);
}

function run(id: number, command: Command): void {
  const child = spawn(command.file, command.args, {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...command.env },
    ...(command.cwd !== undefined && { cwd: command.cwd }),
    ...command.as,
  });
  child.once("spawn", () => report({ id, pid: child.pid ?? 0 }));
  child.once("error", (error) => report({ id, refused: error.message }));
  child.once("exit", (code, signal) => report({ id, exit: { code, signal } }));
  started.push({ child, stop: command.stop });
}

/** The owner may be gone by now, and then nobody is left to care. */
function report(what: Report): void {
  if (process.connected) process.send?.(what, undefined, undefined, () => {});
}

async function end(): Promise<void> {
  for (const { child, stop } of started.toReversed()) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    const exited = once(child, "exit");
    const inTime = setTimeout(killTree, stop === "SIGKILL" ? 0 : graceMs, child.pid);
    if (stop !== "SIGKILL") child.kill(stop);
    await exited;
    clearTimeout(inTime);
  }
  await Promise.allSettled(entrusted.map((path) => rm(path, { recursive: true, force: true, maxRetries: 10 })));
  process.exit(0);
}

process.on("message", obey);
process.once("disconnect", end);
// Nobody sends these to a keeper but a machine that is going down: then the engine should still stop in good order.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.disconnect?.());
