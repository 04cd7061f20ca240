/** The results of a run: a table for the terminal and a Markdown page. */
import { brokenInvariants, countByFigure, countUnknowns } from "./check.ts";
import { killedWithinMs, measureRecovery, type Resumed } from "./checks/recovery.ts";
import { type Figure, invariants } from "./invariants.ts";
import type { RunResult } from "./run.ts";

/** The first violations show what is broken. */
const violationsShown = 25;

type Rows = readonly (readonly string[])[];

export interface Summary {
  readonly head: readonly string[];
  readonly rows: Rows;
}

/** One column for each run. */
export function summarize(results: readonly RunResult[]): Summary {
  const figures = results.map(computeFigures);
  const names = Object.keys(figures[0] ?? {});
  return {
    head: ["", ...results.map(({ options }) => options.bus)],
    rows: names.map((name) => [name, ...figures.map((each) => each[name] ?? "")]),
  };
}

const shown: readonly Figure[] = ["lost", "doubled", "unexpected", "unknown", "order", "answers", "leases", "recovery"];
const titles: Partial<Record<Figure, string>> = {
  unknown: "unknown, done in part",
  order: "order violations",
  answers: "wrong responses",
  leases: "lease violations",
  recovery: "recovery violations",
};

function computeFigures({ options, counts, evidence, violations }: RunResult): Record<string, string> {
  const { facts, arrivals } = evidence;
  const happened = facts.faults.filter((fault) => fault.happened);
  const { unknown, tookEffect } = countUnknowns(evidence);
  const { killed, stopped } = measureRecovery(evidence);
  const byFigure = countByFigure(violations);
  const seconds = (facts.stoppedAt - facts.startedAt) / 1_000;
  return {
    seed: options.seed,
    commands: `${counts.commands} (${(counts.commands / seconds).toFixed(0)}/s)`,
    requests: String(counts.requests),
    faults: `${happened.length} (${((happened.length * 60) / seconds).toFixed(0)}/min)`,
    "unknown to the client": `${unknown}: ${tookEffect} took effect, ${unknown - tookEffect} did not`,
    "duplicate webhooks": String(arrivals.length - new Set(arrivals.map(({ webhookId }) => webhookId)).size),
    ...Object.fromEntries(shown.map((figure) => [titles[figure] ?? figure, String(byFigure[figure])])),
    "quiet after": facts.quietAt ? `${((facts.quietAt - facts.stoppedAt) / 1_000).toFixed(1)} s` : "never",
    "work of killed processes resumed": formatTimes(killed, killedWithinMs(evidence)),
    "work of stopped processes resumed": formatTimes(stopped, 2_000),
  };
}

/** Times of rows that no other fault delayed, which have a limit, and the maximum of all rows. */
function formatTimes(resumed: readonly Resumed[], withinMs: number): string {
  if (resumed.length === 0) return "no claimed rows";
  const of = (rows: readonly Resumed[]) => rows.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const [alone, all] = [of(resumed.filter((row) => row.alone)), of(resumed)];
  const middle = alone[Math.floor(alone.length / 2)];
  const limited =
    middle === undefined
      ? ""
      : `p50 ${ms(middle)}, max ${ms(alone.at(-1) ?? 0)} of ${ms(withinMs)} (${alone.length}); `;
  return `${limited}with other faults max ${ms(all.at(-1) ?? 0)} (${all.length})`;
}

const ms = (value: number): string => `${(value / 1_000).toFixed(2)} s`;

export function toText({ head, rows }: Summary): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function toMarkdown({ head, rows }: Summary): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** The page: figures, faults and violations. */
export function renderReport(results: readonly RunResult[]): string {
  const parts = results.map((result) => {
    const { options, violations, evidence } = result;
    const done = Map.groupBy(
      evidence.facts.faults.filter(({ happened }) => happened),
      ({ fault, detail }) => (fault === "failpoint" ? `failpoint ${detail?.name}: ${detail?.action}` : fault),
    );
    const faults = [...done].map(([fault, all]) => [fault, String(all.length)]).sort();
    return [`## ${options.bus}, seed ${options.seed}`, violationsText(result), "Faults that happened:"]
      .concat(toMarkdown({ head: ["fault", "times"], rows: faults }))
      .concat(violations.length === 0 ? [] : [`The evidence is in \`${options.folder}\`.`])
      .join("\n\n");
  });
  return `${["# Chaos", toMarkdown(summarize(results)), ...parts].join("\n\n")}\n`;
}

export function violationsText({ violations }: Pick<RunResult, "violations">): string {
  return violations.length === 0 ? "Nothing was broken." : violationLines(violations).join("\n");
}

/** Nothing if nothing was broken. */
export function violationLines(violations: RunResult["violations"]): string[] {
  return brokenInvariants(violations).map((name) => {
    const its = violations.filter(({ invariant }) => invariant === name);
    const lines = its.slice(0, violationsShown).map(({ what }) => `  - ${what}`);
    const more = its.length > violationsShown ? [`  - and ${its.length - violationsShown} more`] : [];
    return [`- **${name}** (${its.length}): ${invariants[name].holds}`, ...lines, ...more].join("\n");
  });
}
