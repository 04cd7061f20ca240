/**
 * Whether the process can do its work now, and if not, why.
 *
 * The checks of the service run in parallel, each within a second. A process is also not ready while it stops, and when its
 * event loop is so late that leases and timeouts cannot be trusted. Parallel probes share one run of the checks. A probe
 * learns which check failed; the log gets the error, once.
 */
import type { HttpApp } from "@todoke/http";
import { withTimeout } from "@todoke/kernel/worker";
import { LoopDelay } from "./loop-delay.ts";

/** Resolves when the dependency works. At the deadline the check has failed, whether it stops or not. */
export type Check = (deadline: AbortSignal) => Promise<unknown>;

export interface ReadinessOptions {
  readonly checks: Readonly<Record<string, Check>>;
  readonly stopping: AbortSignal;
  readonly log: Pick<HttpApp["log"], "info" | "warn">;
  /** Names what does not work now, while requests are served. */
  readonly degraded?: () => readonly string[];
  readonly checkMaxMs?: number;
  /** The bound on the 99th percentile of the event loop delay. */
  readonly loopDelayMaxMs?: number;
}

export interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
}

export interface ReadinessReport {
  /** "degraded": requests are served, and a failed check names what does not work: events wait while a bus is away. */
  readonly status: "ready" | "degraded" | "not-ready" | "stopping";
  readonly checks: readonly CheckResult[];
}

export class Readiness implements Disposable {
  readonly #options: Required<ReadinessOptions>;
  readonly #loopDelay = new LoopDelay();
  readonly #failing = new Set<string>();
  #running: Promise<readonly CheckResult[]> | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = { checkMaxMs: 1_000, loopDelayMaxMs: 1_000, degraded: () => [], ...options };
  }

  /** The event loop delay. */
  get loopDelayMs(): number {
    return this.#loopDelay.p99Ms;
  }

  async report(): Promise<ReadinessReport> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    const checks = await this.#running;
    const degraded = this.#options.degraded().map((name) => ({ name, ok: false, ms: 0 }));
    const served = degraded.length > 0 ? "degraded" : "ready";
    const status = checks.every(({ ok }) => ok) ? served : "not-ready";
    return { status: this.#options.stopping.aborted ? "stopping" : status, checks: [...checks, ...degraded] };
  }

  async #runAll(): Promise<readonly CheckResult[]> {
    const { checks, loopDelayMaxMs } = this.#options;
    const late = Math.round(this.#loopDelay.p99Ms);
    const loop = { name: "event-loop", ok: late <= loopDelayMaxMs, ms: late };
    return [loop, ...(await Promise.all(Object.entries(checks).map(([name, check]) => this.#run(name, check))))];
  }

  async #run(name: string, check: Check): Promise<CheckResult> {
    const since = performance.now();
    const error = await errorOf(check, this.#options.checkMaxMs);
    this.#logChange(name, error);
    return { name, ok: error === undefined, ms: Math.round(performance.now() - since) };
  }

  /** Probes come every few seconds; only changes are logged. */
  #logChange(name: string, error: unknown): void {
    const { log } = this.#options;
    if (error === undefined && this.#failing.delete(name)) log.info({ check: name }, "ready again");
    if (error === undefined || this.#failing.has(name)) return;
    this.#failing.add(name);
    log.warn({ check: name, err: error }, "not ready");
  }

  [Symbol.dispose](): void {
    this.#loopDelay[Symbol.dispose]();
  }
}

/** Undefined if the check passes in time. */
async function errorOf(check: Check, maxMs: number): Promise<unknown> {
  const deadline = new AbortController();
  try {
    await withTimeout(maxMs, Promise.try(check, deadline.signal));
    return undefined;
  } catch (error) {
    deadline.abort();
    return error ?? new Error("failed without a reason");
  }
}
