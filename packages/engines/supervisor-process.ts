/**
 * The supervisor: a small process between an owner (a test run, a bench, `npm start`) and its engine.
 *
 * It starts the processes that the owner requests. When the owner ends, it stops them and removes the owner's folders. It
 * recognizes that end by the closed IPC channel, which is the same for a dispose, a Ctrl-C, an exception and a kill -9, so
 * the owner needs no exit handler.
 *
 * A program of its own: supervisor.ts starts it. Other files import only its types.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { killTree } from "./process-tree.ts";

export interface OsUser {
  readonly uid: number;
  readonly gid: number;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: an engine inherits no variable from its owner. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The user to run it as. Default: the current user. */
  readonly runAs?: OsUser;
  /** Sent to stop it. SIGKILL is the quickest, for temporary data. */
  readonly stopSignal: NodeJS.Signals;
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type SupervisorRequest = { readonly remove: string } | RunRequest;

interface RunRequest {
  readonly id: number;
  readonly run: Command;
  /** Written to both outputs when the process has exited. */
  readonly endMark: string;
}

export type SupervisorReport =
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly error: string }
  | { readonly id: number; readonly exit: ExitStatus };

/** How long a server may take to stop. PostgreSQL's last checkpoint takes the longest. */
const stopTimeoutMs = 30_000;

const pathsToRemove: string[] = [];
const started: { readonly child: ChildProcess; readonly stopSignal: NodeJS.Signals }[] = [];

function handleRequest(request: SupervisorRequest): void {
  if ("remove" in request) pathsToRemove.push(request.remove);
  else run(request);
}

function run({ id, run: command, endMark }: RunRequest): void {
  const child = spawn(command.file, command.args, {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...command.env },
    ...(command.cwd !== undefined && { cwd: command.cwd }),
    ...command.runAs,
  });
  child.once("spawn", () => report({ id, pid: child.pid ?? 0 }));
  child.once("error", (error) => report({ id, error: error.message }));
  child.once("exit", (code, signal) => {
    // Behind everything that the process printed: both write to the same pipes. The report takes another way.
    for (const stream of [process.stdout, process.stderr]) stream.write(`${endMark}\n`);
    report({ id, exit: { code, signal } });
  });
  started.push({ child, stopSignal: command.stopSignal });
}

/** A failure to send is ignored: the owner has ended. */
function report(message: SupervisorReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function stopAll(): Promise<void> {
  for (const { child, stopSignal } of started.toReversed()) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    const exited = once(child, "exit");
    const killTimer = setTimeout(killTree, stopSignal === "SIGKILL" ? 0 : stopTimeoutMs, child.pid);
    if (stopSignal !== "SIGKILL") child.kill(stopSignal);
    await exited;
    clearTimeout(killTimer);
  }
  await Promise.allSettled(pathsToRemove.map((path) => rm(path, { recursive: true, force: true, maxRetries: 10 })));
  process.exit(0);
}

// The owner has ended: the output has no reader.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
process.on("message", handleRequest);
process.once("disconnect", stopAll);
// Sent when the machine shuts down. The engine then still stops in an orderly way.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.disconnect?.());
