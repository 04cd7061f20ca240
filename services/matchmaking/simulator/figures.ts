/** The results of a simulation in numbers, for the report and for --json. */
import type { ModeRules } from "../rules/index.ts";
import type { MadeMatch, Outcome } from "./simulation.ts";

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export interface Figures {
  readonly mode: string;
  readonly tickets: number;
  readonly matches: number;
  /** Counts tickets, like all counts here except `matches`. */
  readonly matched: number;
  readonly expired: { readonly timeout: number; readonly heartbeat: number };
  readonly cancelled: number;
  readonly refused: number;
  readonly already_waiting: number;
  readonly lasted_seconds: number;
  readonly waiting_seconds: Percentiles | null;
  /** Between the highest and the lowest skill in a match; null if the mode does not use skill. */
  readonly skill_gap: Percentiles | null;
  /** Between the strongest and the weakest team, per player; null if teams have one player. */
  readonly team_gap: Percentiles | null;
  readonly regions: readonly RegionFigures[];
}

interface RegionFigures {
  readonly region: string;
  readonly matches: number;
  readonly waiting_seconds: Percentiles | null;
  readonly skill_gap: Percentiles | null;
}

export function computeFigures({ mode, teamSize }: ModeRules, outcome: Outcome): Figures {
  const { matches, tickets, expired, cancelled, refused, alreadyWaiting, durationMs: lastedMs } = outcome;
  const waits = toWaits(matches);
  const byRegion = Map.groupBy(matches, ({ region }) => region);
  return {
    mode,
    tickets,
    matches: matches.length,
    matched: waits.length,
    expired,
    cancelled,
    refused,
    already_waiting: alreadyWaiting,
    lasted_seconds: lastedMs / 1000,
    waiting_seconds: computePercentiles(waits),
    skill_gap: computePercentiles(toSkillGaps(matches)),
    team_gap: teamSize > 1 ? computePercentiles(matches.flatMap(({ teamGap }) => teamGap ?? [])) : null,
    regions: [...byRegion]
      .flatMap(([region, there]) => (region === undefined ? [] : [{ region, there }]))
      .sort((a, b) => b.there.length - a.there.length)
      .map(({ region, there }) => ({
        region,
        matches: there.length,
        waiting_seconds: computePercentiles(toWaits(there)),
        skill_gap: computePercentiles(toSkillGaps(there)),
      })),
  };
}

/** Waiting time of each ticket, in seconds. */
export const toWaits = (matches: readonly MadeMatch[]): readonly number[] =>
  matches.flatMap(({ waitsMs }) => waitsMs.map((ms) => ms / 1000));

export const toSkillGaps = (matches: readonly MadeMatch[]): readonly number[] =>
  matches.flatMap(({ skillGap }) => skillGap ?? []);

/** Nearest-rank percentiles: each is a value that occurred. */
function computePercentiles(values: readonly number[]): Percentiles | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

/** Rounds to a tenth; finer digits are noise. */
export const round = (value: number): number => Math.round(value * 10) / 10;
