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

/** RabbitMQ prints about 40 lines when it cannot start, the most of all engines. */
const linesMax = 60;

export async function startSupervisor(name: string, log: (line: string) => void = () => {}): Promise<Supervisor> {
  const child = fork(fileURLToPath(new URL("./supervisor-process.ts", import.meta.url)), {
    detached: true, // in its own session, so that a Ctrl-C in the terminal reaches the owner only
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: "" }, // without the owner's loaders and flags
    silent: true,
  });
  const lines: string[] = [];
  const exited = once(child, "exit");
  for (const stream of [child.stdout, child.stderr]) readLines(stream, recordLine);
  const handlers: ((report: SupervisorReport) => void)[] = [];
  child.on("message", (report: SupervisorReport) => handlers[report.id]?.(report));
  child.once("exit", () => {
    for (const [id, handle] of handlers.entries()) handle({ id, error: `its supervisor ended: ${lines.join("\n")}` });
  });
  const send = (request: SupervisorRequest) => void child.send(request, () => {}); // a failure shows as the child's exit
  const folder = join(tmpdir(), `todoke-${name}-${randomBytes(6).toString("hex")}`);
  send({ remove: folder });
  mkdirSync(folder, { mode: 0o700 });

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
      const id = handlers.push((report) => {
        if ("pid" in report) started.resolve({ pid: report.pid, exited: exited.promise });
        else if ("exit" in report) exited.resolve(report.exit);
        else {
          started.reject(new Error(report.error));
          exited.resolve({ code: null, signal: null });
        }
      });
      send({ id: id - 1, run: command });
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
