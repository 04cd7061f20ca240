/**
 * Whether the process can do its work just now, and if not, why.
 *
 * The checks that the service gives are asked side by side, each within a second. It is also not ready while it stops,
 * and when the event loop runs so late that leases and timeouts can no longer be trusted. However many ask at once, the
 * checks run once. Which check failed is told to whoever asks; what exactly failed is told to the log, once.
 */
import type { HttpApp } from "@todoke/http";
import { LoopDelay } from "./loop-delay.ts";

/** Resolves when all is well. It should give up at the deadline; it is given up then in any case. */
export type Check = (deadline: AbortSignal) => Promise<unknown>;

export interface ReadinessOptions {
  readonly checks: Readonly<Record<string, Check>>;
  readonly stopping: AbortSignal;
  readonly log: Pick<HttpApp["log"], "info" | "warn">;
  readonly checkMaxMs?: number;
  /** The highest bearable 99th percentile of how late the event loop runs. */
  readonly loopDelayMaxMs?: number;
}

export interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
}

export interface ReadinessReport {
  readonly status: "ready" | "not-ready" | "stopping";
  readonly checks: readonly CheckResult[];
}

export class Readiness implements Disposable {
  readonly #options: Required<ReadinessOptions>;
  readonly #loopDelay = new LoopDelay();
  readonly #failing = new Set<string>();
  #asking: Promise<readonly CheckResult[]> | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = { checkMaxMs: 1_000, loopDelayMaxMs: 1_000, ...options };
  }

  /** How late the event loop runs. */
  get loopDelayMs(): number {
    return this.#loopDelay.p99Ms;
  }

  async report(): Promise<ReadinessReport> {
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined;
    });
    const checks = await this.#asking;
    const status = checks.every(({ ok }) => ok) ? "ready" : "not-ready";
    return { status: this.#options.stopping.aborted ? "stopping" : status, checks };
  }

  async #askAll(): Promise<readonly CheckResult[]> {
    const { checks, loopDelayMaxMs } = this.#options;
    const late = Math.round(this.#loopDelay.p99Ms);
    const loop = { name: "event-loop", ok: late <= loopDelayMaxMs, ms: late };
    return [loop, ...(await Promise.all(Object.entries(checks).map(([name, check]) => this.#ask(name, check))))];
  }

  async #ask(name: string, check: Check): Promise<CheckResult> {
    const since = performance.now();
    const fault = await faultOf(check, this.#options.checkMaxMs);
    this.#tell(name, fault);
    return { name, ok: fault === undefined, ms: Math.round(performance.now() - since) };
  }

  /** Probes come every few seconds; only a change is news. */
  #tell(name: string, fault: unknown): void {
    const { log } = this.#options;
    if (fault === undefined && this.#failing.delete(name)) log.info({ check: name }, "ready again");
    if (fault === undefined || this.#failing.has(name)) return;
    this.#failing.add(name);
    log.warn({ check: name, err: fault }, "not ready");
  }

  [Symbol.dispose](): void {
    this.#loopDelay[Symbol.dispose]();
  }
}

/** Undefined when the check passes in time. */
async function faultOf(check: Check, maxMs: number): Promise<unknown> {
  const deadline = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(() => {
    resolve(new Error(`no answer within ${maxMs} ms`));
    deadline.abort();
  }, maxMs);
  const passed = Promise.try(check, deadline.signal).then(
    () => undefined,
    (error) => error ?? new Error("failed without a reason"),
  );
  return Promise.race([passed, late]).finally(() => clearTimeout(timer));
}
