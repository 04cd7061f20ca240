/**
 * Bar charts as SVG, for light and dark pages and for screen readers: every bar has its name and figure as text, the chart
 * has a title and a description, and colour is never the only signal.
 */
export interface Bar {
  readonly name: string;
  readonly value: number;
  /** Highlighted by colour and a bold name. */
  readonly ours?: boolean;
}

export interface BarChart {
  readonly title: string;
  /** The unit of the bars: "jobs per second". */
  readonly unit: string;
  readonly better: "more" | "less";
  readonly bars: readonly Bar[];
}

const barWidth = 400;
const figureWidth = 90;
const top = 58;
const barHeight = 22;
const pitch = 34;
// Average of a letter at 14 px. The name column is as wide as the longest name, up to nameMax letters.
const letterWidth = 7.2;
const nameMax = 60;

// Contrast to the background is at least 3:1 for bars and 7:1 for text.
const style = `
  text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 } .unit { fill: #4b535d }
  .ours { font-weight: 600 } .bar { fill: #7a8591 } .bar.ours { fill: #0a69b5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .unit { fill: #b3bdc8 } .bar { fill: #8f99a5 } .bar.ours { fill: #4aa8f0 }
  }`;

export function barChart({ title, unit, better, bars }: BarChart): string {
  const maxValue = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const names = bars.map(({ name }) => truncateName(name));
  const nameWidth = Math.round(Math.max(...names.map(({ length }) => length), 20) * letterWidth) + 20;
  const width = nameWidth + barWidth + figureWidth;
  const height = top + bars.length * pitch;
  const description = bars.map(({ name, value }) => `${name} ${formatFigure(value)}`).join("; ");
  const barElements = bars.map(({ value, ours }, index) => {
    const y = top + index * pitch;
    const ownClass = ours ? " ours" : "";
    const length = Math.max(1, (value / maxValue) * barWidth);
    return `
  <text class="name${ownClass}" x="${nameWidth - 10}" y="${y + 16}" text-anchor="end">${escapeXml(names[index] ?? "")}</text>
  <rect class="bar${ownClass}" x="${nameWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight}" rx="3"/>
  <text class="figure${ownClass}" x="${(nameWidth + length + 8).toFixed(1)}" y="${y + 16}">${formatFigure(value)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
  <title id="title">${escapeXml(title)}</title>
  <desc id="description">${escapeXml(`${unit}, ${better} is better: ${description}`)}</desc>
  <style>${style}
  </style>
  <text class="title" x="0" y="18">${escapeXml(title)}</text>
  <text class="unit" x="0" y="40">${escapeXml(unit)}; ${better} is better</text>${barElements.join("")}
</svg>
`;
}

const formatFigure = (value: number) =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 });

/** The chart cuts a long name; the description has all of it. */
const truncateName = (name: string) => (name.length > nameMax ? `${name.slice(0, nameMax - 1)}…` : name);

const escapeXml = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
