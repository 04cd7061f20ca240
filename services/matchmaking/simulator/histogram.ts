/** Counts values in bars of equal width, for a terminal and for a chart. */
import { round } from "./figures.ts";

export interface Bar {
  readonly from: number;
  /** Null: all higher values. */
  readonly to: number | null;
  readonly count: number;
}

const barsMax = 10;

/** Bars up to the 99th percentile; all higher values share the last one. */
export function computeHistogram(values: readonly number[]): readonly Bar[] {
  if (values.length === 0) return [];
  const sorted = values.toSorted((a, b) => a - b);
  const width = chooseBarWidth(sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 0);
  const counts = Array.from({ length: barsMax + 1 }, () => 0);
  for (const value of sorted) {
    const bar = Math.min(barsMax, Math.floor(value / width));
    counts[bar] = (counts[bar] ?? 0) + 1;
  }
  const last = counts.findLastIndex((count) => count > 0);
  return counts.slice(0, last + 1).map((count, bar) => ({
    from: round(bar * width),
    to: bar === barsMax ? null : round((bar + 1) * width),
    count,
  }));
}

/** The smallest 1, 2 or 5 times a power of ten with which `top` fits the bars. */
function chooseBarWidth(top: number): number {
  for (let power = 0.1; ; power *= 10)
    for (const step of [1, 2, 5]) if (step * power * barsMax > top) return step * power;
}
