/** The last hour of one number. A missing minute is a gap, not a zero. */
import { useTexts } from "../texts/index.ts";

interface SparklineProps {
  readonly label: string;
  readonly values: readonly (number | null)[];
  readonly tone?: "bad";
  readonly format?: (value: number) => string;
}

const [width, height, margin] = [84, 26, 3];

export function Sparkline({ label, values, tone, format = String }: SparklineProps) {
  const t = useTexts();
  const known = values.filter((value) => value !== null);
  const now = values.at(-1) ?? null;
  if (known.length === 0) return <span class="muted">–</span>;
  const [min, max] = [Math.min(...known), Math.max(...known)];
  const x = (index: number) => margin + (index * (width - 2 * margin)) / Math.max(values.length - 1, 1);
  // A flat line lies in the middle; one that is flat at zero, at the bottom.
  const y = (value: number) => {
    if (max === min) return max === 0 ? height - margin : height / 2;
    return height - margin - ((value - min) / (max - min)) * (height - 2 * margin);
  };
  const text = now === null ? "–" : format(now);
  return (
    <span class={`spark ${tone === "bad" && max > 0 ? "bad" : ""}`} title={t.sparkline(label, text, format(max))}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={t.sparkline(label, text, format(max))}
      >
        {segments(values).map(({ from, numbers }) => (
          <polyline key={from} points={numbers.map((value, index) => `${x(from + index)},${y(value)}`).join(" ")} />
        ))}
        {now !== null && <circle cx={x(values.length - 1)} cy={y(now)} r="2.5" />}
      </svg>
      <span class="number">{text}</span>
    </span>
  );
}

/** Stretches without a gap. A single point is drawn as a short line by its round caps. */
function segments(
  values: readonly (number | null)[],
): { readonly from: number; readonly numbers: readonly number[] }[] {
  const found: { from: number; numbers: number[] }[] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    const last = found.at(-1);
    if (last && last.from + last.numbers.length === index) last.numbers.push(value);
    else found.push({ from: index, numbers: [value] });
  });
  return found;
}
