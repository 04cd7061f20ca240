/**
 * The place of one process: it is started, and whenever it ends it is started again, as a supervisor would. Its database
 * and its bus are behind wires of its own, which stay when it is replaced.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openWire, programOf, until, type Wire } from "@todoke/kernel/testing";
import type { Exit } from "./evidence.ts";
import type { BusFaults } from "./flaky-bus.ts";
import type { FailpointOrder } from "./patches/orders.ts";
import { couldNotStart, type ProcessOptions, type Report } from "./process-contract.ts";

export interface SlotOptions extends ProcessOptions {
  /** "entitlement-1". Also the name of its database role. */
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  readonly database: Wire;
  readonly busWire: Wire;
  /** Where what it prints goes. */
  readonly logFile: string;
  readonly onExit: (exit: Exit) => void;
}

/** What only the next process of a slot is given. */
export interface Once {
  readonly skewMs?: number;
  readonly failpoints?: readonly FailpointOrder[];
}

/** A supervisor waits a moment before it tries again. */
const restartMs = 100;
/** Longer than any start on a busy machine; a process that needs more is taken for one that never will. */
const startMs = 60_000;

/** A stack and the line before it. */
const lastWordsMax = 3_000;

const program = new URL("./process.ts", import.meta.url);
const instrument = new URL("./patches/instrument.ts", import.meta.url).href;

export class Slot {
  readonly #options: SlotOptions;
  #child: ChildProcess | undefined;
  #http: Wire | undefined;
  #wanted: Exit["wanted"] = "nothing";
  #once: Once = {};
  #ended = false;
  #life: Promise<void> | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  get service(): string {
    return this.#options.service;
  }

  get database(): Wire {
    return this.#options.database;
  }

  get busWire(): Wire {
    return this.#options.busWire;
  }

  /** The process that serves; undefined while there is none. */
  get pid(): number | undefined {
    return this.#http && this.#child?.pid;
  }

  /** Its HTTP face, behind a wire; undefined while it does not serve. */
  get http(): Wire | undefined {
    return this.#http;
  }

  start(): void {
    this.#life ??= this.#live();
  }

  /** Resolves when it serves. */
  up(): Promise<void> {
    const what = `${this.name} serves; see ${this.#options.logFile}`;
    return until(what, () => this.#http !== undefined, { withinMs: startMs });
  }

  /** kill -9. */
  kill(): void {
    this.#leave("kill", "SIGKILL");
  }

  /** SIGTERM; its successor, and only that one, gets `given`. */
  terminate(given: Once = {}): void {
    this.#once = given;
    this.#leave("stop", "SIGTERM");
  }

  /** Nobody is sent there any more, as a load balancer would have it. */
  #leave(wanted: Exit["wanted"], signal: NodeJS.Signals): void {
    this.#wanted = wanted;
    this.#http = undefined;
    this.#child?.kill(signal);
    this.resume(); // One that holds still would not hear of it.
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Whether it holds still because of a SIGSTOP, its own or ours. Where the system does not tell, it does not. */
  isPaused(): boolean {
    try {
      return readFileSync(`/proc/${this.#child?.pid}/stat`, "utf8").split(") ")[1]?.startsWith("T") ?? false;
    } catch {
      return false;
    }
  }

  disturbBus(faults: Partial<BusFaults>): void {
    this.#child?.send(faults, () => {});
  }

  /** Ends it for good: by draining, or at once. */
  async end(how: "stop" | "kill"): Promise<void> {
    this.#ended = true;
    this.resume();
    if (how === "kill") this.kill();
    else this.terminate();
    await this.#life;
  }

  async #live(): Promise<void> {
    while (!this.#ended) {
      const given = this.#once;
      this.#once = {};
      const exit = await this.#runOnce(given);
      this.#http = undefined;
      this.#options.onExit(exit);
      if (!this.#ended) await sleep(restartMs);
    }
  }

  async #runOnce({ skewMs = 0, failpoints = [] }: Once): Promise<Exit> {
    const { name, service, bus, env, logFile } = this.#options;
    const log = openSync(logFile, "a");
    const options: ProcessOptions = { service, bus, skewMs };
    const armed = failpoints.length > 0;
    const planted = env.CHAOS_PLANTED !== undefined;
    let served = false;
    this.#wanted = "nothing" as Exit["wanted"]; // Changed by others while the process runs.
    // Failpoints and defects are patched into the sources.
    const child = fork(armed || planted ? program : programOf(program), [], {
      execArgv: armed || planted ? ["--import", instrument] : [],
      env: {
        ...env,
        ...(armed && { CHAOS_FAILPOINTS: JSON.stringify(failpoints) }),
        CHAOS_PROCESS: JSON.stringify(options),
      },
      stdio: ["ignore", log, log, "ipc"],
    });
    closeSync(log);
    this.#child = child;
    await using wires = new AsyncDisposableStack();
    child.on("message", async (report: Report) => {
      if (!("url" in report)) return;
      const http = await openWire(report.url);
      // It told where it serves, and is gone by now.
      if (wires.disposed) return http[Symbol.asyncDispose]();
      wires.use(http);
      served = true;
      if (this.#wanted === "nothing" && child.exitCode === null) this.#http = http;
    });
    const [code, signal] = await once(child, "exit");
    const killedItself = signal === "SIGKILL" && failpoints.some(({ action }) => action === "kill");
    const neverServed = code === couldNotStart || (this.#wanted === "stop" && !served);
    const wanted = killedItself ? "kill" : neverServed ? "start" : this.#wanted;
    const lastWords = wanted === "nothing" || code === 1 ? readFileSync(logFile, "utf8").slice(-lastWordsMax) : "";
    return { at: Date.now(), target: name, pid: child.pid ?? 0, code, signal, wanted, lastWords };
  }
}
