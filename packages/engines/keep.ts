/**
 * The owner's end of a keeper (keeper.ts says what it promises).
 *
 * A keeper comes with a private folder for whatever lives only as long as it does. The folder is entrusted to the keeper
 * before it is made: there is no moment at which a kill -9 of the owner would leave it behind.
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
import type { Command, Exit, Order, Report } from "./keeper.ts";

export interface Kept {
  readonly pid: number;
  readonly exited: Promise<Exit>;
}

export interface Keeper extends AsyncDisposable {
  /** For files that matter only while the keeper lives; empty at first, and ours alone. */
  readonly folder: string;
  /** Has `path` removed at the end, whatever the end is. Entrust first, then create. */
  entrust(path: string): void;
  /** Resolves when the process runs; rejects when it cannot be started. */
  run(command: Command): Promise<Kept>;
  /** The last lines that anything run here has printed: what to show when it failed. */
  lastLines(): string;
}

/** Enough to see why a server did not come up: RabbitMQ needs the most for it, about forty. */
const linesKept = 60;

export async function startKeeper(name: string, log: (line: string) => void = () => {}): Promise<Keeper> {
  const keeper = fork(fileURLToPath(new URL("./keeper.ts", import.meta.url)), {
    detached: true, // a session of its own, so that a Ctrl-C in the terminal reaches the owner only
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: "" }, // loaders and flags of the owner are not for it
    silent: true,
  });
  const lines: string[] = [];
  const gone = once(keeper, "exit");
  for (const stream of [keeper.stdout, keeper.stderr]) follow(stream, keepLine);
  const jobs = new Map<number, Job>();
  keeper.on("message", (report: Report) => jobs.get(report.id)?.hear(report));
  keeper.once("exit", () => {
    for (const job of jobs.values()) job.hear({ id: 0, refused: `its keeper ended: ${lines.join("\n")}` });
  });

  const order = (what: Order) => void keeper.send(what, () => {}); // a keeper that is gone is heard by its exit
  const folder = join(tmpdir(), `todoke-${name}-${randomBytes(6).toString("hex")}`);
  order({ remove: folder });
  mkdirSync(folder, { mode: 0o700 });

  function keepLine(line: string): void {
    lines.push(line);
    if (lines.length > linesKept) lines.shift();
    log(line);
  }

  return {
    folder,
    entrust: (path) => order({ remove: path }),
    run(command) {
      const job = new Job();
      jobs.set(jobs.size + 1, job);
      order({ id: jobs.size, run: command });
      return job.started;
    },
    lastLines: () => lines.join("\n"),
    async [Symbol.asyncDispose]() {
      if (keeper.connected) keeper.disconnect();
      await gone;
    },
  };
}

/** One process the keeper runs for us, as its reports tell. */
class Job {
  readonly #started = Promise.withResolvers<Kept>();
  readonly #exited = Promise.withResolvers<Exit>();

  get started(): Promise<Kept> {
    return this.#started.promise;
  }

  hear(report: Report): void {
    if ("pid" in report) this.#started.resolve({ pid: report.pid, exited: this.#exited.promise });
    else if ("exit" in report) this.#exited.resolve(report.exit);
    else {
      this.#started.reject(new Error(report.refused));
      this.#exited.resolve({ code: null, signal: null });
    }
  }
}

function follow(stream: Readable | null, line: (line: string) => void): void {
  if (stream) createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on("line", line);
}
