/** The outcome of a simulation on a screen: shares, percentiles, and how waiting times and skill gaps are spread. */
import { table } from "../output.ts";
import type { Figures, Percentiles } from "./figures.ts";
import { gapsOf, waitsOf } from "./figures.ts";
import type { Outcome } from "./simulation.ts";

export function pictureOf(figures: Figures, { matches }: Outcome): string {
  const sections = [
    `${figures.mode}: ${number(figures.tickets)} tickets within ${lasted(figures.lasted_seconds)}`,
    sharesOf(figures),
    ...(figures.matched > 0 ? [percentilesTable(figures)] : []),
    ...(figures.regions.length > 0 ? [regionsTable(figures)] : []),
    ...chart("Waiting, in seconds", waitsOf(matches)),
    ...chart("Skill gap of a match", gapsOf(matches)),
  ];
  return sections.join("\n\n");
}

function sharesOf({ tickets, matched, matches, expired, cancelled, refused, already_waiting }: Figures): string {
  const row = (what: string, count: number, more = "") => [what, number(count), share(count, tickets), more];
  const rest = [
    row("left by themselves", cancelled),
    row("refused", refused, "they lack what the rules ask for"),
    row("waited already", already_waiting, "an earlier ticket of the same user was open"),
  ].filter(([, count]) => count !== "0");
  return table([
    row("matched", matched, `in ${number(matches)} matches`),
    row(
      "expired",
      expired.timeout + expired.heartbeat,
      `time up ${expired.timeout}, no heartbeat ${expired.heartbeat}`,
    ),
    ...rest,
  ]);
}

const head = ["p50", "p90", "p99", "max"];
const cells = (of: Percentiles | null): string[] => (of ? [of.p50, of.p90, of.p99, of.max].map(number) : []);

function percentilesTable({ waiting_seconds, skill_gap, team_gap }: Figures): string {
  const rows = [
    ["waiting, in seconds", waiting_seconds],
    ["skill gap of a match", skill_gap],
    ["between teams, per player", team_gap],
  ] as const;
  return table([["", ...head], ...rows.flatMap(([what, of]) => (of ? [[what, ...cells(of)]] : []))]);
}

function regionsTable({ regions }: Figures): string {
  const isSkilled = regions.some(({ skill_gap }) => skill_gap !== null);
  const names = [
    "region",
    "matches",
    "waiting p50",
    "p90",
    "p99",
    "max",
    ...(isSkilled ? ["skill gap p50", ...head.slice(1)] : []),
  ];
  const rows = regions.map(({ region, matches, waiting_seconds, skill_gap }) => [
    region,
    number(matches),
    ...cells(waiting_seconds),
    ...cells(skill_gap),
  ]);
  return table([names, ...rows]);
}

const barsMax = 10;
const barWidth = 40;

/** Bars of one width each, up to where 99 of 100 are; what is beyond shares the last. */
function chart(title: string, values: readonly number[]): string[] {
  if (values.length === 0) return [];
  const sorted = values.toSorted((a, b) => a - b);
  const width = barWidthFor(sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 0);
  const counts = Array.from({ length: barsMax + 1 }, () => 0);
  for (const value of sorted) {
    const bar = Math.min(barsMax, Math.floor(value / width));
    counts[bar] = (counts[bar] ?? 0) + 1;
  }
  const last = counts.findLastIndex((count) => count > 0);
  const highest = Math.max(...counts);
  const rows = counts.slice(0, last + 1).map((count, at) => {
    const from = number(round(at * width));
    const label = at === barsMax ? `${from} and more` : `${from} to ${number(round((at + 1) * width))}`;
    // Whoever is there is seen, however few they are.
    return [label, "█".repeat(count === 0 ? 0 : Math.max(1, Math.round((count / highest) * barWidth))), number(count)];
  });
  return [`${title}\n${table(rows.map(([label = "", bar = "", count = ""]) => [label, `${bar} ${count}`]))}`];
}

/** 1, 2 or 5 with zeros: the smallest with which `top` is within the bars. */
function barWidthFor(top: number): number {
  for (let power = 0.1; ; power *= 10)
    for (const step of [1, 2, 5]) if (step * power * barsMax > top) return step * power;
}

const round = (value: number): number => Math.round(value * 10) / 10;
const number = (value: number): string => value.toLocaleString("en-US");
const share = (count: number, of: number): string => `${((100 * count) / Math.max(1, of)).toFixed(1)} %`;

function lasted(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
