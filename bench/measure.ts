/** How figures are taken: every contender in turn, three rounds, medians, and ratios within the one run. */
import { cpus, totalmem } from "node:os";

export interface Contender {
  readonly name: string;
  /** Does its work and says how much that was; what takes long to set up is done in `before`. */
  readonly before?: () => Promise<void>;
  readonly run: () => Promise<number>;
  /** What has to be over before others are measured. */
  readonly after?: () => Promise<void>;
  /** How long the work took, where the contender knows better than a clock around it; asked after each run. */
  readonly seconds?: number | (() => number);
}

export interface Figure {
  readonly name: string;
  /** Work per second, median of the rounds, and what the rounds gave. */
  readonly perSecond: number;
  readonly rounds: readonly number[];
}

const rounds = 3;

/** Runs the contenders by turns, so that a slow minute of the machine meets them all. */
export async function race(title: string, contenders: readonly Contender[]): Promise<Figure[]> {
  const taken = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const { name, before, run, after, seconds } of contenders) {
      process.stderr.write(`  ${title}: ${name}, round ${round} of ${rounds} …`.padEnd(100).concat("\r"));
      await before?.();
      globalThis.gc?.();
      const startedAt = performance.now();
      const work = await run();
      const clocked = (performance.now() - startedAt) / 1_000;
      taken.get(name)?.push(work / ((typeof seconds === "function" ? seconds() : seconds) ?? clocked));
      await after?.();
    }
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  return contenders.map(({ name }) => {
    const all = taken.get(name) ?? [];
    return { name, perSecond: Math.round(median(all)), rounds: all.map(Math.round) };
  });
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export const machine = () => ({
  cpu: `${cpus().length} x ${cpus()[0]?.model.trim()}`,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
});
