/** Series of measurements, and whether one grows without bound: the slope of the line through its second half. */

/** One value at a time in seconds. */
export interface Point {
  readonly at: number;
  readonly value: number;
}

export interface Series {
  readonly name: string;
  readonly unit: string;
  /** Growth over the second half of the run that is noise, in the unit. */
  readonly noise: number;
  readonly points: readonly Point[];
}

export interface Judged {
  readonly series: Series;
  readonly first: number;
  readonly last: number;
  readonly perHour: number;
  readonly grows: boolean;
}

/** Growth over the second half that counts as unbounded, as a share of the mean. */
const growthMax = 0.2;

/** Least squares; 0 for fewer than two times. */
export function slopeOf(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [at, value] = [mean((point) => point.at), mean((point) => point.value)];
  const spread = points.reduce((sum, point) => sum + (point.at - at) ** 2, 0);
  if (points.length < 2 || spread === 0) return 0;
  return points.reduce((sum, point) => sum + (point.at - at) * (point.value - value), 0) / spread;
}

/** The first half is the warm-up: caches and pools fill. */
export function judge(series: Series): Judged {
  const { points, noise } = series;
  const half = points.slice(Math.floor(points.length / 2));
  const slope = slopeOf(half);
  const mean = half.reduce((sum, { value }) => sum + value, 0) / Math.max(1, half.length);
  const growth = slope * ((half.at(-1)?.at ?? 0) - (half[0]?.at ?? 0));
  return {
    series,
    first: points[0]?.value ?? 0,
    last: points.at(-1)?.value ?? 0,
    perHour: slope * 3_600,
    grows: growth > Math.max(noise, growthMax * mean),
  };
}

/** The change of `amount` per change of `work`, between two measurements: bytes per command. */
export function ratesOf(amount: readonly Point[], work: readonly Point[]): Point[] {
  return amount.slice(1).flatMap((point, n) => {
    const done = (work[n + 1]?.value ?? 0) - (work[n]?.value ?? 0);
    return done > 0 ? [{ at: point.at, value: (point.value - (amount[n]?.value ?? 0)) / done }] : [];
  });
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
