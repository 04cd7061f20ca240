/**
 * Runs a simulation in a thread of its own, within bounds of time and memory: the event loop answers requests meanwhile.
 * A thread that reaches a bound is ended.
 */
import { Worker } from "node:worker_threads";
import type { ModeRules } from "../rules/index.ts";
import type { PlayerOptions } from "./arrivals.ts";
import type { Figures } from "./figures.ts";
import type { Bar } from "./histogram.ts";

export interface SimulationInput {
  readonly rules: ModeRules;
  readonly players: PlayerOptions;
}

export interface SimulationResult {
  readonly figures: Figures;
  readonly waiting: readonly Bar[];
  readonly skillGaps: readonly Bar[];
}

export interface ThreadBounds {
  readonly timeoutMs: number;
}

/** Ten thousand players need a tenth of it. */
const heapMaxMb = 256;

/** Undefined if it took too long, or too much memory. */
export function runInThread(
  input: SimulationInput,
  { timeoutMs }: ThreadBounds,
): Promise<SimulationResult | undefined> {
  const thread = new Worker(new URL("./simulation-thread.ts", import.meta.url), {
    workerData: input,
    resourceLimits: { maxOldGenerationSizeMb: heapMaxMb },
    execArgv: [],
  });
  // A stop of the process does not wait for it.
  thread.unref();
  const { promise, resolve, reject } = Promise.withResolvers<SimulationResult | undefined>();
  const timer = setTimeout(() => resolve(undefined), timeoutMs).unref();
  thread.on("message", resolve);
  thread.on("error", (error) => {
    if (error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve(undefined);
    else reject(error);
  });
  thread.on("exit", () => reject(new Error("the simulation ended without a result")));
  return promise.finally(() => {
    clearTimeout(timer);
    return thread.terminate();
  });
}
