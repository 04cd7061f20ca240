/**
 * The owner's side of a supervisor (supervisor-process.ts describes the other side).
 *
 * A supervisor has a private folder for temporary files. The folder is registered for removal before it is created, so a
 * kill -9 of the owner cannot leave it behind.
 */
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Command, ExitStatus, SupervisorReport, SupervisorRequest } from "./supervisor-process.ts";

export interface SupervisedProcess {
  readonly pid: number;
  /** Resolves when `lastLines` has everything that it printed. */
  readonly exited: Promise<ExitStatus>;
}

export interface Supervisor extends AsyncDisposable {
  /** A private folder, removed when the supervisor ends. Empty at first. */
  readonly folder: string;
  /** Removes `path` when the supervisor ends. Call it before you create the path. */
  removeAtExit(path: string): void;
  /** Resolves when the process runs; rejects when it cannot be started. */
  run(command: Command): Promise<SupervisedProcess>;
  /** The last lines that its processes printed, for error messages. */
  lastLines(): string;
}

/** No engine prints a NUL. */
const endMarkPrefix = "\0end of output of process ";

/** RabbitMQ prints about 40 lines when it cannot start, the most of all engines. */
const linesMax = 60;

export interface SupervisorOptions {
  /** Called with every line that its processes print. */
  readonly log?: ((line: string) => void) | undefined;
  /** Where its folder is created. Default: the system's folder for temporary files. */
  readonly parentFolder?: string | undefined;
}

export async function startSupervisor(
  name: string,
  { log = () => {}, parentFolder = tmpdir() }: SupervisorOptions = {},
): Promise<Supervisor> {
  const child = fork(fileURLToPath(new URL("./supervisor-process.ts", import.meta.url)), {
    detached: true, // in its own session, so that a Ctrl-C in the terminal reaches the owner only
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: "" }, // without the owner's loaders and flags
    silent: true,
  });
  const lines: string[] = [];
  const exited = once(child, "exit");
  const outputs = [child.stdout, child.stderr];
  const endMarks = new Map<string, { outputs: number; resolve: () => void }>();
  for (const stream of outputs) readLines(stream, handleLine);
  const handlers: ((report: SupervisorReport) => void)[] = [];
  child.on("message", (report: SupervisorReport) => handlers[report.id]?.(report));
  child.once("exit", () => {
    for (const [id, handle] of handlers.entries()) handle({ id, error: `its supervisor ended: ${lines.join("\n")}` });
  });
  const send = (request: SupervisorRequest) => void child.send(request, () => {}); // a failure shows as the child's exit
  const folder = join(parentFolder, `todoke-${name}-${randomBytes(6).toString("hex")}`);
  send({ remove: folder });
  mkdirSync(folder, { mode: 0o700 });

  /** A mark is at the end of the last line of a process that did not finish it. */
  function handleLine(line: string): void {
    const [text = "", id] = line.split(endMarkPrefix);
    if (text !== "" || id === undefined) recordLine(text);
    const waiting = id === undefined ? undefined : endMarks.get(id);
    if (waiting && --waiting.outputs === 0) waiting.resolve();
  }

  function recordLine(line: string): void {
    lines.push(line);
    if (lines.length > linesMax) lines.shift();
    log(line);
  }

  return {
    folder,
    removeAtExit: (path) => send({ remove: path }),
    run(command) {
      const [started, exited] = [Promise.withResolvers<SupervisedProcess>(), Promise.withResolvers<ExitStatus>()];
      const printed = Promise.withResolvers<void>();
      const id = handlers.push((report) => {
        if ("pid" in report) started.resolve({ pid: report.pid, exited: exited.promise });
        else if ("exit" in report) void printed.promise.then(() => exited.resolve(report.exit));
        else {
          started.reject(new Error(report.error));
          exited.resolve({ code: null, signal: null });
        }
      });
      endMarks.set(String(id), { outputs: outputs.length, resolve: printed.resolve });
      send({ id: id - 1, run: command, endMark: `${endMarkPrefix}${id}` });
      return started.promise;
    },
    lastLines: () => lines.join("\n"),
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function readLines(stream: Readable | null, onLine: (line: string) => void): void {
  if (stream) createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on("line", onLine);
}
