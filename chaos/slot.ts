/** Supervises one process: restarts it whenever it exits. Its database and bus proxies outlive the process. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type FaultProxy, openFaultProxy, resolveProgram, until } from "@todoke/kernel/testing";
import type { Exit } from "./evidence.ts";
import type { FailpointOrder } from "./patches/orders.ts";
import { startInstrumented } from "./patches/start.ts";
import { type Disturbance, type ProcessOptions, type Report, startFailedCode } from "./process-contract.ts";

export interface SlotOptions extends ProcessOptions {
  /** "entitlement-1". Also the name of its database role. */
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  readonly database: FaultProxy;
  readonly busProxy: FaultProxy;
  /** File for its output. */
  readonly logFile: string;
  readonly onExit: (exit: Exit) => void;
}

/** Options of the next process only. */
export interface NextProcess {
  readonly skewMs?: number;
  readonly failpoints?: readonly FailpointOrder[];
}

/** Delay before a restart. */
const restartMs = 100;
/** Longer than any start on a busy machine. */
const startMs = 60_000;

/** Enough for a stack trace. */
const lastWordsMax = 3_000;

const program = new URL("./process.ts", import.meta.url);

export class Slot {
  readonly #options: SlotOptions;
  #child: ChildProcess | undefined;
  #http: FaultProxy | undefined;
  #intended: Exit["wanted"] = "nothing";
  #next: NextProcess = {};
  #isEnding = false;
  #supervision: Promise<void> | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  get service(): string {
    return this.#options.service;
  }

  get database(): FaultProxy {
    return this.#options.database;
  }

  get busProxy(): FaultProxy {
    return this.#options.busProxy;
  }

  /** The process that serves; undefined while there is none. */
  get pid(): number | undefined {
    return this.#http && this.#child?.pid;
  }

  /** Proxy of its HTTP server; undefined while it does not serve. */
  get http(): FaultProxy | undefined {
    return this.#http;
  }

  start(): void {
    this.#supervision ??= this.#supervise();
  }

  /** Resolves when it serves. */
  up(): Promise<void> {
    const description = `${this.name} serves; see ${this.#options.logFile}`;
    return until(description, () => this.#http !== undefined, { withinMs: startMs });
  }

  /** kill -9. */
  kill(): void {
    this.#signal("kill", "SIGKILL");
  }

  /** Sends SIGTERM; only the next process gets `given`. */
  terminate(given: NextProcess = {}): void {
    this.#next = given;
    this.#signal("stop", "SIGTERM");
  }

  /** Clients no longer use it, as behind a load balancer. */
  #signal(wanted: Exit["wanted"], signal: NodeJS.Signals): void {
    this.#intended = wanted;
    this.#http = undefined;
    this.#child?.kill(signal);
    this.resume(); // A stopped process would not receive the signal.
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Whether it is stopped by a SIGSTOP. False where /proc is missing. */
  isPaused(): boolean {
    try {
      return readFileSync(`/proc/${this.#child?.pid}/stat`, "utf8").split(") ")[1]?.startsWith("T") ?? false;
    } catch {
      return false;
    }
  }

  disturb(faults: Disturbance): void {
    this.#child?.send(faults, () => {});
  }

  /** Ends it without a restart: by SIGTERM or by SIGKILL. */
  async end(how: "stop" | "kill"): Promise<void> {
    this.#isEnding = true;
    this.resume();
    if (how === "kill") this.kill();
    else this.terminate();
    await this.#supervision;
  }

  async #supervise(): Promise<void> {
    while (!this.#isEnding) {
      const given = this.#next;
      this.#next = {};
      const exit = await this.#runOnce(given);
      this.#http = undefined;
      this.#options.onExit(exit);
      if (!this.#isEnding) await sleep(restartMs);
    }
  }

  async #runOnce({ skewMs = 0, failpoints = [] }: NextProcess): Promise<Exit> {
    const { name, service, bus, env, logFile } = this.#options;
    const log = openSync(logFile, "a");
    const options: ProcessOptions = { service, bus, skewMs };
    const ordered = failpoints.length > 0 ? { CHAOS_FAILPOINTS: JSON.stringify(failpoints) } : {};
    const isInstrumented = failpoints.length > 0 || env.CHAOS_PLANTED !== undefined;
    const start = isInstrumented
      ? startInstrumented(program, { ...env, ...ordered })
      : { execArgv: [], program: resolveProgram(program) };
    let served = false;
    this.#intended = "nothing" as Exit["wanted"]; // Other methods change it while the process runs.
    const child = fork(start.program, [], {
      execArgv: [...start.execArgv],
      env: { ...env, ...ordered, CHAOS_PROCESS: JSON.stringify(options) },
      stdio: ["ignore", log, log, "ipc"],
    });
    closeSync(log);
    this.#child = child;
    await using proxies = new AsyncDisposableStack();
    child.on("message", async (report: Report) => {
      if (!("url" in report)) return;
      const http = await openFaultProxy(report.url);
      // The process has exited in the meantime.
      if (proxies.disposed) return http[Symbol.asyncDispose]();
      proxies.use(http);
      served = true;
      if (this.#intended === "nothing" && child.exitCode === null) this.#http = http;
    });
    const [code, signal] = await once(child, "exit");
    const killedItself = signal === "SIGKILL" && failpoints.some(({ action }) => action === "kill");
    const neverServed = code === startFailedCode || (this.#intended === "stop" && !served);
    const wanted = killedItself ? "kill" : neverServed ? "start" : this.#intended;
    const logTail = wanted === "nothing" || code === 1 ? readFileSync(logFile, "utf8").slice(-lastWordsMax) : "";
    return { at: Date.now(), target: name, pid: child.pid ?? 0, code, signal, wanted, logTail };
  }
}
