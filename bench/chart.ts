/**
 * Bar charts as SVG, for pages that people read in light and in dark, by eye or by ear: every bar has its name and its
 * figure beside it in text, the whole has a title and a description, and nothing is said by colour alone.
 */
export interface Bar {
  readonly name: string;
  readonly value: number;
  /** Set apart from the others, in colour and by a heavier name. */
  readonly ours?: boolean;
}

export interface BarChart {
  readonly title: string;
  /** What a bar's length means: "jobs per second". */
  readonly unit: string;
  readonly better: "more" | "less";
  readonly bars: readonly Bar[];
}

const barWidth = 400;
const figureWidth = 90;
const top = 58;
const barHeight = 22;
const pitch = 34;
// Of most letters at 14 px; names are as wide as the longest of them, up to a point.
const letterWidth = 7.2;
const nameMax = 60;

// The colours have a contrast of 3:1 and more to their backgrounds, text 7:1.
const style = `
  text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 } .unit { fill: #4b535d }
  .ours { font-weight: 600 } .bar { fill: #7a8591 } .bar.ours { fill: #0a69b5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .unit { fill: #b3bdc8 } .bar { fill: #8f99a5 } .bar.ours { fill: #4aa8f0 }
  }`;

export function barChart({ title, unit, better, bars }: BarChart): string {
  const longest = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const names = bars.map(({ name }) => shortened(name));
  const nameWidth = Math.round(Math.max(...names.map(({ length }) => length), 20) * letterWidth) + 20;
  const width = nameWidth + barWidth + figureWidth;
  const height = top + bars.length * pitch;
  const said = bars.map(({ name, value }) => `${name} ${figure(value)}`).join("; ");
  const drawn = bars.map(({ value, ours }, place) => {
    const y = top + place * pitch;
    const kind = ours ? " ours" : "";
    const length = Math.max(1, (value / longest) * barWidth);
    return `
  <text class="name${kind}" x="${nameWidth - 10}" y="${y + 16}" text-anchor="end">${inXml(names[place] ?? "")}</text>
  <rect class="bar${kind}" x="${nameWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight}" rx="3"/>
  <text class="figure${kind}" x="${(nameWidth + length + 8).toFixed(1)}" y="${y + 16}">${figure(value)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title said">
  <title id="title">${inXml(title)}</title>
  <desc id="said">${inXml(`${unit}, ${better} is better: ${said}`)}</desc>
  <style>${style}
  </style>
  <text class="title" x="0" y="18">${inXml(title)}</text>
  <text class="unit" x="0" y="40">${inXml(unit)}; ${better} is better</text>${drawn.join("")}
</svg>
`;
}

const figure = (value: number) =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 });

/** A long name is cut in the picture; the description has it whole. */
const shortened = (name: string) => (name.length > nameMax ? `${name.slice(0, nameMax - 1)}…` : name);

const inXml = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
