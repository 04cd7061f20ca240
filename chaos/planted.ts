/** Runs the planted defects, each in the smallest run that shows it; each must be caught. */
import { join } from "node:path";
import { brokenInvariants } from "./check.ts";
import type { InvariantName } from "./invariants.ts";
import { type Planted, planted } from "./patches/index.ts";
import { named } from "./patches/orders.ts";
import type { Summary } from "./report.ts";
import { run } from "./run.ts";

export interface Caught {
  readonly defect: Planted;
  /** The expected invariants that caught it; empty if it was not caught. */
  readonly by: readonly InvariantName[];
  /** All violated invariants. */
  readonly broke: readonly InvariantName[];
  readonly violations: number;
  /** From the first process to the result of the check. */
  readonly tookMs: number;
}

export interface PlantedOptions {
  readonly folder: string;
  /** The same run without the defect, which must have no violation. */
  readonly control?: boolean;
}

/** Enough for a correct system on a busy machine; a broken one would never become quiet. */
const quietMs = 25_000;
const defaults = { bus: "postgres", forMs: 6_000, rate: 60, faults: [] } as const;

export async function runPlanted(defect: Planted, { folder, control = false }: PlantedOptions): Promise<Caught> {
  const { bus, forMs, rate, faults } = { ...defaults, ...defect.broughtOutBy };
  const schedule = faults
    .map((fault) => ({ forMs: 0, detail: {}, ...fault }))
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((fault, index) => ({ ...fault, n: index + 1 }));
  const { violations, tookMs } = await run({
    seed: defect.name,
    bus,
    forMs,
    rate,
    faultsPerMinute: 0,
    schedule,
    quietMs,
    folder: join(folder, control ? `${defect.name}-control` : defect.name),
    planted: control ? `control:${defect.name}` : defect.name,
  });
  const broke = brokenInvariants(violations);
  const by = broke.filter((invariant) => defect.caughtBy.includes(invariant));
  return { defect, by, broke, violations: violations.length, tookMs };
}

export interface AllOptions {
  readonly folder: string;
  readonly stopping: AbortSignal;
  readonly onCaught: (caught: Caught) => void;
}

/** One after the other, each in its own environment. */
export async function runAllPlanted(defects: readonly Planted[], options: AllOptions): Promise<Caught[]> {
  const { folder, stopping, onCaught } = options;
  const all: Caught[] = [];
  for (const defect of defects) {
    if (stopping.aborted) break;
    const caught = await runPlanted(defect, { folder });
    all.push(caught);
    onCaught(caught);
  }
  return all;
}

/** All defects, or the one with this name; throws for an unknown name. */
export const getPlanted = (name: string): readonly Planted[] =>
  name === "all" ? planted : named(planted, [name], "planted defect");

export const formatLine = ({ defect, by, tookMs }: Caught): readonly string[] => [
  defect.name,
  by.length > 0 ? by.join(", ") : "NOT CAUGHT",
  `${(tookMs / 1_000).toFixed(0)} s`,
];

export const caughtTable = (all: readonly Caught[]): Summary => ({
  head: ["defect", "caught by", "after"],
  rows: all.map(formatLine),
});
