/** Merges the samples of a service's processes by minute. A minute without a sample is left out: a gap is not zero. */
import type { StoredSample } from "./sample-store.ts";

export interface Minute {
  readonly minute: string;
  readonly requests: number;
  readonly errors: number;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly backlog: number | null;
  readonly oldest_age_s: number | null;
  readonly dead: number | null;
}

export function mergeSamples(samples: readonly StoredSample[]): Minute[] {
  return [...Map.groupBy(samples, ({ minute }) => minute)].map(([minute, ofMinute]) => mergeMinute(minute, ofMinute));
}

function mergeMinute(minute: string, stored: readonly StoredSample[]): Minute {
  const samples = stored.map(({ sample }) => sample);
  const sum = (read: (sample: (typeof samples)[number]) => number) =>
    samples.reduce((total, each) => total + read(each), 0);
  // Every process with gauges reads the same database, at a slightly different time.
  const largest = (read: (sample: (typeof samples)[number]) => number | null): number | null => {
    const known = samples.flatMap((sample) => read(sample) ?? []);
    return known.length > 0 ? Math.max(...known) : null;
  };
  const boundaries = samples.find((sample) => sample.boundaries.length > 0)?.boundaries ?? [];
  const counts = [...boundaries, Number.POSITIVE_INFINITY].map((_, index) => sum(({ counts }) => counts[index] ?? 0));
  return {
    minute,
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    p50_ms: quantileMs(boundaries, counts, 0.5),
    p99_ms: quantileMs(boundaries, counts, 0.99),
    backlog: largest(({ backlog }) => backlog),
    oldest_age_s: largest(({ oldest_age_s }) => oldest_age_s),
    dead: largest(({ dead }) => dead),
  };
}

/** Linear within its bucket; null without requests. Past the last boundary it is that boundary. */
export function quantileMs(boundaries: readonly number[], counts: readonly number[], share: number): number | null {
  const total = counts.reduce((all, each) => all + each, 0);
  if (total === 0) return null;
  let rest = share * total;
  for (const [index, count] of counts.entries()) {
    if (rest <= count && count > 0) {
      const from = boundaries[index - 1] ?? 0;
      const to = boundaries[index] ?? from;
      return Math.round((from + ((to - from) * rest) / count) * 1_000_000) / 1_000;
    }
    rest -= count;
  }
  return (boundaries.at(-1) ?? 0) * 1_000;
}
