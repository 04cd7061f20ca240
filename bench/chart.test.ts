import { expect, test } from "vitest";
import { type Bar, barChart } from "./chart.ts";

const bars: readonly Bar[] = [
  { name: "ours", value: 74_000, ours: true },
  { name: "theirs", value: 37_000 },
  { name: "a very slow one", value: 0 },
];
const chart = (more: Partial<Parameters<typeof barChart>[0]> = {}) =>
  barChart({ title: "Drain", unit: "jobs per second", better: "more", bars, ...more });

const widths = (svg: string) => [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));

test("the length of a bar is proportional to its figure, and a zero is visible", () => {
  const [ours = 0, theirs = 0, slow = 0] = widths(chart());
  expect(theirs).toBeCloseTo(ours / 2, 0);
  expect(slow).toBe(1);
});

test("bars and figures stay inside the chart", () => {
  const svg = chart();
  const right = [...svg.matchAll(/<text class="figure[^>]*x="([\d.]+)"/g)].map(([, x]) => Number(x));
  const [, width = 0] = /viewBox="0 0 (\d+)/.exec(svg)?.map(Number) ?? [];
  for (const x of right) expect(x).toBeLessThanOrEqual(width - 60);
});

test("a screen reader gets title, unit, names and figures", () => {
  const svg = chart();
  expect(svg).toContain('role="img" aria-labelledby="title description"');
  expect(svg).toContain('<title id="title">Drain</title>');
  expect(svg).toContain("jobs per second, more is better: ours 74,000; theirs 37,000; a very slow one 0</desc>");
});

test("every colour of the light theme has a dark one", () => {
  const [light = "", dark = ""] = chart().split("prefers-color-scheme: dark");
  const coloured = (css: string) =>
    [...css.matchAll(/([.\w]+) \{[^}]*fill: #/g)].map(([, selector]) => selector).sort();
  expect(coloured(light).length).toBeGreaterThan(3);
  expect(coloured(dark.slice(0, dark.indexOf("</style>")))).toEqual(coloured(light));
});

test("names are escaped; a long name is cut in the chart and complete in the description", () => {
  const name = `<script>"&" ${"x".repeat(60)}`;
  const svg = chart({ title: "a < b", bars: [{ name, value: 1 }] });
  expect(svg).not.toContain("<script>");
  expect(svg).toContain("a &lt; b");
  expect(svg).toContain(`&lt;script&gt;&quot;&amp;&quot; ${"x".repeat(60)} 1</desc>`);
  expect(svg).toContain("…</text>");
});

test("figures have three significant digits, and a chart may have no bars", () => {
  const svg = chart({ bars: [1.234, 12.34, 123.4, 123_456].map((value) => ({ name: "n", value })) });
  expect([...svg.matchAll(/class="figure"[^>]*>([^<]+)</g)].map(([, text]) => text)).toEqual([
    "1.23",
    "12.3",
    "123",
    "123,456",
  ]);
  expect(chart({ bars: [] })).toContain("</svg>");
});
