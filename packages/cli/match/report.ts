/** Formats the result of a simulation: shares, percentiles, and histograms of waiting times and skill gaps. */
import {
  computeHistogram,
  type Figures,
  type Outcome,
  type Percentiles,
  toSkillGaps,
  toWaits,
} from "@todoke/matchmaking/simulator";
import { table } from "../output.ts";

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

const barWidth = 40;

function formatHistogram(title: string, values: readonly number[]): string[] {
  const bars = computeHistogram(values);
  if (bars.length === 0) return [];
  const highest = Math.max(...bars.map(({ count }) => count));
  const rows = bars.map(({ from, to, count }) => {
    const label = to === null ? `${formatNumber(from)} and more` : `${formatNumber(from)} to ${formatNumber(to)}`;
    // A bar with any value is at least one character long.
    const bar = "█".repeat(count === 0 ? 0 : Math.max(1, Math.round((count / highest) * barWidth)));
    return [label, `${bar} ${formatNumber(count)}`];
  });
  return [`${title}\n${table(rows)}`];
}

const formatNumber = (value: number): string => value.toLocaleString("en-US");
const formatShare = (count: number, of: number): string => `${((100 * count) / Math.max(1, of)).toFixed(1)} %`;

function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
