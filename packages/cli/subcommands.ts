/** Commands with subcommands: `todoke dead list`, `todoke keys revoke`. */
import type { Invocation } from "./command.ts";
import { UsageError } from "./errors.ts";
import { suggest } from "./suggest.ts";

export interface Subcommand {
  /** Its `args` are those after the subcommand. */
  run(call: Invocation): Promise<number>;
  /** The options and switches that it accepts. */
  readonly options: readonly string[];
}

export async function runSubcommand(
  subcommands: Readonly<Record<string, Subcommand>>,
  call: Invocation,
): Promise<number> {
  const [name = "", ...args] = call.args;
  const subcommand = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (!subcommand) throw unknownSubcommand(name, Object.keys(subcommands));
  const unexpected = [...call.switches, ...Object.keys(call.values)].find((name) => !subcommand.options.includes(name));
  if (unexpected) throw new UsageError(`--${unexpected} is not an option of ${name}.`);
  return subcommand.run({ ...call, args });
}

const unknownSubcommand = (name: string, known: readonly string[]): UsageError =>
  new UsageError(
    name ? `There is no subcommand "${name}".${suggest(name, known)}` : `Give a subcommand: ${known.join(", ")}.`,
  );
