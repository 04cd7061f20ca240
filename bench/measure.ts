/** Measures contenders in turn, three rounds each, and reports medians. */
import { cpus, totalmem } from "node:os";

export interface Contender {
  readonly name: string;
  /** Set-up that is not measured. */
  readonly before?: () => Promise<void>;
  /** Does the work and returns its amount. */
  readonly run: () => Promise<number>;
  /** Waits for work that would disturb the next contender. */
  readonly after?: () => Promise<void>;
  /** Duration of the run, if the contender measures it itself; read after each run. */
  readonly seconds?: number | (() => number);
}

export interface Figure {
  readonly name: string;
  /** Work per second, median of the rounds. */
  readonly perSecond: number;
  readonly rounds: readonly number[];
}

/** The contenders alternate, so that a slow minute of the machine affects all of them. */
export async function measureInTurns(title: string, contenders: readonly Contender[], rounds = 3): Promise<Figure[]> {
  const measured = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let n = 1; n <= rounds; n++) {
    for (const { name, before, run, after, seconds } of contenders) {
      showProgress(`${title}: ${name}, round ${n} of ${rounds}`);
      await before?.();
      globalThis.gc?.();
      const startedAt = performance.now();
      const work = await run();
      const elapsedSeconds = (performance.now() - startedAt) / 1_000;
      measured.get(name)?.push(work / ((typeof seconds === "function" ? seconds() : seconds) ?? elapsedSeconds));
      await after?.();
    }
  }
  clearProgress();
  return contenders.map(({ name }) => {
    const all = measured.get(name) ?? [];
    return { name, perSecond: Math.round(median(all)), rounds: all.map(Math.round) };
  });
}

/** Overwrites one line of the terminal. */
export const showProgress = (text: string) => void process.stderr.write(`  ${text} …`.padEnd(100).concat("\r"));
export const clearProgress = () => void process.stderr.write(`${" ".repeat(100)}\r`);

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export const round = (value: number) => Math.round(value * 100) / 100;

export const ratio = (over: Figure | undefined, under: Figure | undefined) =>
  round((over?.perSecond ?? Number.NaN) / (under?.perSecond ?? Number.NaN));

export const machine = () => ({
  cpu: `${cpus().length} x ${cpus()[0]?.model.trim()}`,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
});
