/** What `npm run chaos` is called with. Every fault in it is told at once, a sentence each. */
import { parseArgs } from "node:util";
import { type BusKind, busKinds } from "./settings.ts";

export interface Arguments {
  readonly seed: string;
  readonly minutes: number;
  readonly buses: readonly BusKind[];
  readonly rate: number;
  readonly faultsPerMinute: number;
  readonly out?: string;
  /** Run the planted defects: all of them, or the one that is named. */
  readonly planted?: "all" | string;
  /** Give the verdict on the evidence in a folder once more. */
  readonly check?: string;
}

export const usage = `Real services on real engines, under load and under faults; then a checker counts effects.

  npm run chaos                                        a minute on each bus
  npm run chaos -- --seed 7 --minutes 5 --bus nats     the same seed gives the same schedule of faults
  npm run chaos -- --planted [name]                    the planted defects, each of which must be caught
  npm run chaos -- --check DIR                         the verdict on a run's evidence, once more

  --seed TEXT       what the schedule and the clients' wishes are made from (default 1)
  --minutes N       under load and faults, on each bus, from 0.1 to 600 (default 1)
  --bus KIND        ${busKinds.join(", ")} or all (default all)
  --rate N          commands a second, from 1 to 1000 (default 80)
  --faults N        faults a minute, from 0 to 120 (default 30)
  --out DIR         where the evidence and the report go (default: a new folder for temporary files)
  --help

Exit code 0: nothing was broken. 1: something was. 2: called in a way that makes no sense.`;

/** The arguments, or all that is wrong with them. */
export function readArguments(argv: readonly string[]): Arguments | "help" | readonly string[] {
  const faults: string[] = [];
  const values = parse(argv, faults);
  if (!values) return faults;
  if (values.help) return "help";
  const number = (
    name: "minutes" | "rate" | "faults",
    usual: number,
    [min, max]: readonly [number, number],
  ): number => {
    const value = Number(values[name] ?? usual);
    if (!(value >= min && value <= max)) faults.push(`--${name} should be a number from ${min} to ${max}`);
    return value;
  };
  const bus = values.bus ?? "all";
  const buses = bus === "all" ? busKinds : busKinds.filter((kind) => kind === bus);
  if (buses.length === 0) faults.push(`--bus should be ${busKinds.join(", ")} or all`);
  const given: Arguments = {
    seed: values.seed ?? "1",
    minutes: number("minutes", 1, [0.1, 600]),
    buses,
    rate: number("rate", 80, [1, 1_000]),
    faultsPerMinute: number("faults", 30, [0, 120]),
    ...(values.out !== undefined && { out: values.out }),
    ...(values.check !== undefined && { check: values.check }),
    ...(values.planted && { planted: values.name ?? "all" }),
  };
  return faults.length > 0 ? faults : given;
}

function parse(argv: readonly string[], faults: string[]) {
  const text = { type: "string" } as const;
  const options = { seed: text, minutes: text, bus: text, rate: text, faults: text, out: text, check: text } as const;
  const switches = { planted: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: { ...options, ...switches },
      allowPositionals: true,
    });
    const [name, ...rest] = positionals;
    const odd = values.planted ? rest : positionals;
    if (odd.length > 0) faults.push(`nobody knows what to do with "${odd.join(" ")}"`);
    return faults.length > 0 ? undefined : { ...values, name };
  } catch (error) {
    faults.push((error as Error).message);
    return undefined;
  }
}
