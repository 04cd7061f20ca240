/** Runs the planted defects: each in the smallest run that brings it out, and each must be caught. */
import { join } from "node:path";
import { brokenBy } from "./check.ts";
import type { InvariantName } from "./invariants.ts";
import { type Planted, planted } from "./patches/index.ts";
import { named } from "./patches/orders.ts";
import type { Summary } from "./report.ts";
import { run } from "./run.ts";

export interface Caught {
  readonly defect: Planted;
  /** Those it was to be caught by and was; none, and it went through unseen. */
  readonly by: readonly InvariantName[];
  /** All that it broke. */
  readonly broke: readonly InvariantName[];
  readonly violations: number;
  /** From the first process to the verdict. */
  readonly tookMs: number;
}

export interface PlantedOptions {
  readonly folder: string;
  /** Without the defect, and all else the same: nothing must be found then. */
  readonly control?: boolean;
}

/** Enough for what is well, on a busy machine too; what is not would wait for ever. */
const quietMs = 25_000;
const usual = { bus: "postgres", forMs: 6_000, rate: 60, faults: [] } as const;

export async function runPlanted(defect: Planted, { folder, control = false }: PlantedOptions): Promise<Caught> {
  const { bus, forMs, rate, faults } = { ...usual, ...defect.broughtOutBy };
  const schedule = faults
    .map((fault) => ({ forMs: 0, detail: {}, ...fault }))
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((fault, place) => ({ ...fault, n: place + 1 }));
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
  const broke = brokenBy(violations);
  const by = broke.filter((invariant) => defect.caughtBy.includes(invariant));
  return { defect, by, broke, violations: violations.length, tookMs };
}

export interface AllOptions {
  readonly folder: string;
  readonly stopping: AbortSignal;
  readonly onCaught: (caught: Caught) => void;
}

/** One after the other, each on a stage of its own. */
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

/** All of them, or the one of this name; an unknown name is an error that lists the known ones. */
export const plantedNamed = (name: string): readonly Planted[] =>
  name === "all" ? planted : named(planted, [name], "planted defect");

export const lineOf = ({ defect, by, tookMs }: Caught): readonly string[] => [
  defect.name,
  by.length > 0 ? by.join(", ") : "NOT CAUGHT",
  `${(tookMs / 1_000).toFixed(0)} s`,
];

export const caughtTable = (all: readonly Caught[]): Summary => ({
  head: ["defect", "caught by", "after"],
  rows: all.map(lineOf),
});
