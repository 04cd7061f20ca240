/** Arguments of `npm run chaos`. All errors are reported together. */
import { parseArgs } from "node:util";
import { services } from "./services/index.ts";
import { type BusKind, busKinds } from "./settings.ts";

export interface Arguments {
  readonly seed: string;
  readonly minutes: number;
  readonly buses: readonly BusKind[];
  /** Names of services. Default: all. */
  readonly services?: readonly string[];
  readonly rate: number;
  readonly faultsPerMinute: number;
  readonly out?: string;
  /** Run all planted defects, or the one with this name. */
  readonly planted?: "all" | string;
  /** Check the evidence in a folder again. */
  readonly check?: string;
}

export const usage = `Runs real services on real engines under load and faults; then a checker verifies the effects.

  npm run chaos                                        one minute on each bus
  npm run chaos -- --seed 7 --minutes 5 --bus nats     the same seed gives the same schedule of faults
  npm run chaos -- --planted [name]                    the planted defects; each must be caught
  npm run chaos -- --check DIR                         check the evidence of a run again

  --seed TEXT       seed of the fault schedule and the clients' commands (default 1)
  --minutes N       duration on each bus, from 0.1 to 600 (default 1)
  --bus KIND        ${busKinds.join(", ")} or all (default all)
  --services NAMES  of ${services.map(({ name }) => name).join(", ")}; separated by commas (default all)
  --rate N          commands per second, from 1 to 1000 (default 80)
  --faults N        faults per minute, from 0 to 120 (default 30)
  --out DIR         folder for evidence and report (default: a new temporary folder)
  --help

Exit code 0: no violation. 1: at least one violation. 2: invalid arguments.`;

/** Returns the arguments, or all errors in them. */
export function readArguments(argv: readonly string[]): Arguments | "help" | readonly string[] {
  const errors: string[] = [];
  const values = parse(argv, errors);
  if (!values) return errors;
  if (values.help) return "help";
  const number = (
    name: "minutes" | "rate" | "faults",
    defaultValue: number,
    [min, max]: readonly [number, number],
  ): number => {
    const value = Number(values[name] ?? defaultValue);
    if (!(value >= min && value <= max)) errors.push(`--${name} must be a number from ${min} to ${max}`);
    return value;
  };
  const bus = values.bus ?? "all";
  const buses = bus === "all" ? busKinds : busKinds.filter((kind) => kind === bus);
  if (buses.length === 0) errors.push(`--bus must be ${busKinds.join(", ")} or all`);
  const names = values.services?.split(",");
  for (const name of names ?? [])
    if (!services.some((service) => service.name === name)) errors.push(`--services: there is no service "${name}"`);
  const given: Arguments = {
    seed: values.seed ?? "1",
    minutes: number("minutes", 1, [0.1, 600]),
    buses,
    rate: number("rate", 80, [1, 1_000]),
    faultsPerMinute: number("faults", 30, [0, 120]),
    ...(names && { services: names }),
    ...(values.out !== undefined && { out: values.out }),
    ...(values.check !== undefined && { check: values.check }),
    ...(values.planted && { planted: values.name ?? "all" }),
  };
  return errors.length > 0 ? errors : given;
}

function parse(argv: readonly string[], errors: string[]) {
  const text = { type: "string" } as const;
  const options = {
    seed: text,
    minutes: text,
    bus: text,
    services: text,
    rate: text,
    faults: text,
    out: text,
    check: text,
  } as const;
  const switches = { planted: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: { ...options, ...switches },
      allowPositionals: true,
    });
    const [name, ...rest] = positionals;
    const unexpected = values.planted ? rest : positionals;
    if (unexpected.length > 0) errors.push(`unexpected argument "${unexpected.join(" ")}"`);
    return errors.length > 0 ? undefined : { ...values, name };
  } catch (error) {
    errors.push((error as Error).message);
    return undefined;
  }
}
