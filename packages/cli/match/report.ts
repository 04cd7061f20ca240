/** Formats the result of a simulation: shares, percentiles, and histograms of waiting times and skill gaps. */
import { table } from "../output.ts";
import type { Figures, Percentiles } from "./figures.ts";
import { round, toSkillGaps, toWaits } from "./figures.ts";
import type { Outcome } from "./simulation.ts";

export function formatReport(figures: Figures, { matches }: Outcome): string {
  const sections = [
    `${figures.mode}: ${formatNumber(figures.tickets)} tickets within ${formatDuration(figures.lasted_seconds)}`,
    formatShares(figures),
    ...(figures.matched > 0 ? [formatPercentiles(figures)] : []),
    ...(figures.regions.length > 0 ? [formatRegions(figures)] : []),
    ...formatHistogram("Waiting, in seconds", toWaits(matches)),
    ...formatHistogram("Skill gap of a match", toSkillGaps(matches)),
  ];
  return sections.join("\n\n");
}

function formatShares({ tickets, matched, matches, expired, cancelled, refused, already_waiting }: Figures): string {
  const row = (what: string, count: number, more = "") => [
    what,
    formatNumber(count),
    formatShare(count, tickets),
    more,
  ];
  const rest = [
    row("cancelled", cancelled),
    row("refused", refused, "attributes that the rules require are missing"),
    row("already waiting", already_waiting, "the user had an open ticket"),
  ].filter(([, count]) => count !== "0");
  return table([
    row("matched", matched, `in ${formatNumber(matches)} matches`),
    row(
      "expired",
      expired.timeout + expired.heartbeat,
      `timeout ${expired.timeout}, no heartbeat ${expired.heartbeat}`,
    ),
    ...rest,
  ]);
}

const head = ["p50", "p90", "p99", "max"];
const cells = (of: Percentiles | null): string[] => (of ? [of.p50, of.p90, of.p99, of.max].map(formatNumber) : []);

function formatPercentiles({ waiting_seconds, skill_gap, team_gap }: Figures): string {
  const rows = [
    ["waiting, in seconds", waiting_seconds],
    ["skill gap of a match", skill_gap],
    ["between teams, per player", team_gap],
  ] as const;
  return table([["", ...head], ...rows.flatMap(([what, of]) => (of ? [[what, ...cells(of)]] : []))]);
}

function formatRegions({ regions }: Figures): string {
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
    formatNumber(matches),
    ...cells(waiting_seconds),
    ...cells(skill_gap),
  ]);
  return table([names, ...rows]);
}

const barsMax = 10;
const barWidth = 40;

/** Bars of equal width up to the 99th percentile; all higher values share the last bar. */
function formatHistogram(title: string, values: readonly number[]): string[] {
  if (values.length === 0) return [];
  const sorted = values.toSorted((a, b) => a - b);
  const width = chooseBarWidth(sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 0);
  const counts = Array.from({ length: barsMax + 1 }, () => 0);
  for (const value of sorted) {
    const bar = Math.min(barsMax, Math.floor(value / width));
    counts[bar] = (counts[bar] ?? 0) + 1;
  }
  const last = counts.findLastIndex((count) => count > 0);
  const highest = Math.max(...counts);
  const rows = counts.slice(0, last + 1).map((count, at) => {
    const from = formatNumber(round(at * width));
    const label = at === barsMax ? `${from} and more` : `${from} to ${formatNumber(round((at + 1) * width))}`;
    // A bar with any value is at least one character long.
    return [
      label,
      "█".repeat(count === 0 ? 0 : Math.max(1, Math.round((count / highest) * barWidth))),
      formatNumber(count),
    ];
  });
  return [`${title}\n${table(rows.map(([label = "", bar = "", count = ""]) => [label, `${bar} ${count}`]))}`];
}

/** The smallest 1, 2 or 5 times a power of ten with which `top` fits the bars. */
function chooseBarWidth(top: number): number {
  for (let power = 0.1; ; power *= 10)
    for (const step of [1, 2, 5]) if (step * power * barsMax > top) return step * power;
}

const formatNumber = (value: number): string => value.toLocaleString("en-US");
const formatShare = (count: number, of: number): string => `${((100 * count) / Math.max(1, of)).toFixed(1)} %`;

function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
