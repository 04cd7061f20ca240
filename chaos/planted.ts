/** Runs the planted defects, each in the smallest run that shows it; each must be caught. */
import { join } from "node:path";
import { brokenInvariants } from "./check.ts";
import type { InvariantName } from "./invariants.ts";
import { type Planted, planted } from "./patches/index.ts";
import { named } from "./patches/orders.ts";
import type { Summary } from "./report.ts";
import { type RunResult, run } from "./run.ts";

export interface Caught {
  readonly defect: Planted;
  /** The expected invariants that caught it; empty if it was not caught. */
  readonly by: readonly InvariantName[];
  /** All violated invariants. */
  readonly broke: readonly InvariantName[];
  readonly violations: number;
  /** From the first process to the result of the check. */
  readonly tookMs: number;
  /** What the same run without the defect violated. */
  readonly control: readonly InvariantName[];
}

interface PlantedOptions {
  readonly folder: string;
  readonly isControl: boolean;
}

/** Enough for a correct system on a busy machine; a broken one would never become quiet. */
const quietMs = 25_000;
const defaults = {
  bus: "postgres",
  services: ["entitlement", "notification", "orders"],
  forMs: 6_000,
  rate: 60,
  faults: [],
} as const;

/** The run of a defect, and the same run without it, which must violate nothing. */
async function runPlanted(defect: Planted, folder: string): Promise<Caught> {
  const { violations, tookMs } = await runOnce(defect, { folder, isControl: false });
  const control = brokenInvariants((await runOnce(defect, { folder, isControl: true })).violations);
  const broke = brokenInvariants(violations);
  const by = broke.filter((invariant) => defect.caughtBy.includes(invariant));
  return { defect, by, broke, violations: violations.length, tookMs, control };
}

function runOnce(defect: Planted, { folder, isControl }: PlantedOptions): Promise<RunResult> {
  const { bus, services, forMs, rate, faults } = { ...defaults, ...defect.broughtOutBy };
  const schedule = faults
    .map((fault) => ({ forMs: 0, detail: {}, ...fault }))
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((fault, index) => ({ ...fault, n: index + 1 }));
  return run({
    seed: defect.name,
    bus,
    services,
    forMs,
    rate,
    faultsPerMinute: 0,
    schedule,
    quietMs,
    folder: join(folder, isControl ? `${defect.name}-control` : defect.name),
    planted: isControl ? `control:${defect.name}` : defect.name,
  });
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
    const caught = await runPlanted(defect, folder);
    all.push(caught);
    onCaught(caught);
  }
  return all;
}

/** All defects, or those with these names, separated by commas; throws for an unknown name. */
export const getPlanted = (name: string): readonly Planted[] =>
  name === "all" ? planted : named(planted, name.split(","), "planted defect");

export const isCaught = ({ by, control }: Caught): boolean => by.length > 0 && control.length === 0;

export const formatLine = ({ defect, by, tookMs, control }: Caught): readonly string[] => [
  defect.name,
  by.length > 0 ? by.join(", ") : "NOT CAUGHT",
  `${(tookMs / 1_000).toFixed(0)} s`,
  control.length > 0 ? control.join(", ") : "nothing",
];

export const caughtTable = (all: readonly Caught[]): Summary => ({
  head: ["defect", "caught by", "after", "the run without it broke"],
  rows: all.map(formatLine),
});
