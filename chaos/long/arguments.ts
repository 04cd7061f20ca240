/** Arguments of the soak and the overload run. */
import { parseArgs } from "node:util";
import { getService } from "../services/index.ts";
import { type BusKind, busKinds } from "../settings.ts";

export interface LongArguments {
  readonly minutes: number;
  readonly bus: BusKind;
  readonly services: readonly string[] | undefined;
  readonly out: string | undefined;
}

/** Throws a sentence for a wrong argument. */
export function readLongArguments(argv: readonly string[], minutesDefault: number): LongArguments {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: { minutes: text, bus: text, services: text, out: text },
  });
  const minutes = Number(values.minutes ?? minutesDefault);
  if (!(minutes >= 0.1 && minutes <= 1_440)) throw new Error("--minutes must be a number from 0.1 to 1440");
  const bus = busKinds.find((kind) => kind === (values.bus ?? "postgres"));
  if (!bus) throw new Error(`--bus must be ${busKinds.join(", ")}`);
  const services = values.services?.split(",");
  for (const name of services ?? []) getService(name);
  return { minutes, bus, services, out: values.out };
}
