/**
 * From a command line to an exit code: 0 done, 1 it failed, 2 it was called or configured wrongly.
 */
import { parseArgs } from "node:util";
import { closestMatch } from "@todoke/http/closest-match";
import type { Call, Command } from "./command.ts";
import { audit } from "./commands/audit.ts";
import { dead } from "./commands/dead.ts";
import { dev } from "./commands/dev.ts";
import { doctor } from "./commands/doctor.ts";
import { helpOn, overview } from "./commands/help.ts";
import { keys } from "./commands/keys.ts";
import { match } from "./commands/match.ts";
import { migrate } from "./commands/migrate.ts";
import { orders } from "./commands/orders.ts";
import { serve } from "./commands/serve.ts";
import { version } from "./commands/version.ts";
import { CommandFailed, Misconfigured, Misused } from "./faults.ts";
import { complain, say, styled } from "./output.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { Stopped } from "./stop.ts";

const commands: readonly Command[] = [dev, serve, migrate, keys, dead, audit, orders, match, doctor, version];

export interface CommandLine {
  readonly argv: readonly string[];
  readonly env: Env;
  readonly services: readonly ServiceEntry[];
}

export async function todoke({ argv, env, services }: CommandLine): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || isHelp(first)) return help(rest, services);
  const name = first === "--version" || first === "-v" ? "version" : first;
  const command = commands.find((known) => known.name === name);
  if (!command) return unknown(name);
  if (rest.some(isHelpSwitch)) return help([name], services);
  try {
    return await command.run({ env, services, ...parse(command, rest) });
  } catch (error) {
    return told(error, command);
  }
}

const isHelpSwitch = (word: string): boolean => word === "--help" || word === "-h";
const isHelp = (word: string): boolean => word === "help" || isHelpSwitch(word);

function help([name]: readonly string[], services: readonly ServiceEntry[]): number {
  if (name === undefined || isHelp(name)) {
    say(overview(commands, services));
    return 0;
  }
  const command = commands.find((known) => known.name === name);
  if (!command) return unknown(name);
  say(helpOn(command));
  return 0;
}

function unknown(name: string): number {
  const meant = closestMatch(name, commands.map((command) => command.name).concat("help"));
  complain(`There is no command "${name}".${meant ? ` Did you mean \`todoke ${meant}\`?` : ""}`);
  complain("`todoke help` lists them all.");
  return 2;
}

function parse(command: Command, args: readonly string[]): Pick<Call, "names" | "switches" | "values"> {
  const options = Object.fromEntries([
    ...Object.keys(command.switches).map((name) => [name, { type: "boolean" }] as const),
    ...Object.keys(command.values ?? {}).map((name) => [name, { type: "string" }] as const),
  ]);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: command.takesNames });
    const given = Object.entries(values);
    return {
      names: positionals,
      switches: new Set(given.flatMap(([name, value]) => (value === true ? [name] : []))),
      values: Object.fromEntries(given.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []))),
    };
  } catch (error) {
    // Node's sentences are good up to the first full stop; after that they explain its own notation.
    throw new Misused(error instanceof Error ? (error.message.split(/\. /)[0] ?? error.message) : String(error));
  }
}

/** Says what went wrong in the way that kind of fault wants, and returns its exit code. */
function told(error: unknown, command: Command): number {
  if (error instanceof Stopped) return 0;
  const mark = styled("red", "✗", process.stderr);
  if (error instanceof Misused) {
    complain(`${mark} ${error.message}`);
    complain(`Usage: ${command.usage}`);
    return 2;
  }
  if (error instanceof Misconfigured) {
    for (const fault of error.faults) complain(`${mark} ${fault}`);
    return 2;
  }
  const expected = error instanceof CommandFailed || isSystemError(error);
  const bug = () => `This is a bug in todoke: ${error instanceof Error ? error.stack : String(error)}`;
  complain(`${mark} ${expected ? error.message : bug()}`);
  return 1;
}

/** The system's own refusals (a folder that may not be written, a full disk) explain themselves. */
const isSystemError = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && "syscall" in error;
