/** The variants of each model: as it is, in other sizes, and with each planted bug. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../test/command.ts";

/** With the sizes that are checked besides the default ones. */
const sizes: Readonly<Record<string, readonly (readonly string[])[]>> = {
  claims: [
    ["LIMIT=1", "FAULTS=4"],
    ["WORKERS=3", "FAULTS=1"],
  ],
  inbox: [["CONSUMERS=3", "FAULTS=3"]],
};

export const models = Object.keys(sizes);

export const readModel = (name: string): string => readFileSync(join(root, `docs/model/${name}.pml`), "utf8");

export interface Variant {
  readonly model: string;
  /** For the preprocessor: "BUG_NO_EXPIRY", "WORKERS=3". */
  readonly defines: readonly string[];
  /** The checker has to find it. */
  readonly isBug: boolean;
}

export function listVariants(model: string): readonly Variant[] {
  const bugs = new Set(readModel(model).match(/(?<=#ifn?def )BUG_\w+/g));
  return [
    { model, defines: [], isBug: false },
    ...(sizes[model] ?? []).map((defines) => ({ model, defines, isBug: false })),
    ...[...bugs].map((bug) => ({ model, defines: [bug], isBug: true })),
  ];
}

export interface Result {
  readonly ok: boolean;
  readonly states: string;
  readonly seconds: string;
  /** What is violated, by the comment of the assertion. */
  readonly text: string;
}

export function resultOf({ model, isBug }: Variant, { report, trail }: { report: string; trail: string }): Result {
  const find = (form: RegExp) => form.exec(report)?.[1];
  const errors = Number(find(/errors: (\d+)/) ?? Number.NaN);
  // A search that was cut short proves nothing.
  const isComplete = !/max search depth too small|out of memory|Search not completed/.test(report) || errors > 0;
  const violated = errors > 0 ? violatedIn(model, trail) : undefined;
  const text = violated ?? (errors === 0 && isComplete ? "no error" : "the search is not complete");
  return {
    ok: isBug ? violated !== undefined : errors === 0 && isComplete,
    states: Number(find(/([\d.e+]+) states, stored/)).toLocaleString("en"),
    seconds: Number(find(/elapsed time ([\d.]+) seconds/)).toFixed(1),
    text: isBug && violated === undefined ? `not found: ${text}` : text,
  };
}

/** The property at the line at which the counterexample ends. */
function violatedIn(model: string, trail: string): string {
  const line = Number(/\.pml:(\d+), Error: assertion violated/.exec(trail)?.[1]);
  const source = readModel(model).split("\n")[line - 1] ?? "";
  const [, property] = /\/\* ([a-z ]+): /.exec(source) ?? [];
  return property ? `"${property}" is violated` : `an assertion without a name is violated: ${source.trim()}`;
}

export const toRow = ({ model, defines, isBug }: Variant, { states, seconds, text }: Result): string[] => [
  model,
  defines.join(" ") || (isBug ? "" : "as it is"),
  states,
  seconds,
  text,
];
