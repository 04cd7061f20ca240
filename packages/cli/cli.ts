/** Runs a command line and returns its exit code: 0 done, 1 failed, 2 wrong usage or settings. */
import cluster from "node:cluster";
import { parseArgs } from "node:util";
import type { Command, Invocation } from "./command.ts";
import { audit } from "./commands/audit.ts";
import { config } from "./commands/config.ts";
import { dead } from "./commands/dead.ts";
import { demo } from "./commands/demo.ts";
import { dev } from "./commands/dev.ts";
import { doctor } from "./commands/doctor.ts";
import { formatHelp, formatOverview } from "./commands/help.ts";
import { keys } from "./commands/keys.ts";
import { match } from "./commands/match.ts";
import { migrate } from "./commands/migrate.ts";
import { orders } from "./commands/orders.ts";
import { serve } from "./commands/serve.ts";
import { version } from "./commands/version.ts";
import { why } from "./commands/why.ts";
import { CommandFailed, SettingsError, UsageError } from "./errors.ts";
import { print, printError, styled } from "./output.ts";
import { runServiceProcess } from "./processes/index.ts";
import { readSecretFiles } from "./secret-files.ts";
import { withoutServiceLinks } from "./service-links.ts";
import type { Env, ServiceEntry } from "./services.ts";
import { Stopped } from "./stop-signal.ts";
import { suggest } from "./suggest.ts";

const commands: readonly Command[] = [
  dev,
  demo,
  serve,
  migrate,
  config,
  keys,
  why,
  dead,
  audit,
  orders,
  match,
  doctor,
  version,
];

export interface CommandLine {
  readonly argv: readonly string[];
  readonly env: Env;
  readonly services: readonly ServiceEntry[];
}

export async function todoke({ argv, env, services }: CommandLine): Promise<number> {
  if (cluster.isWorker) return await runServiceProcess(services).catch((error) => printFailure(error, serve));
  const [first, ...rest] = argv;
  if (first === undefined || isHelpWord(first)) return help(rest, services);
  const name = first === "--version" || first === "-v" ? "version" : first;
  const command = commands.find((known) => known.name === name);
  if (!command) return rejectUnknownCommand(name);
  if (rest.some(isHelpSwitch)) return help([name], services);
  try {
    return await command.run({
      env: readSecretFiles(withoutServiceLinks(env), services),
      services,
      ...parse(command, rest),
    });
  } catch (error) {
    return printFailure(error, command);
  }
}

const isHelpSwitch = (word: string): boolean => word === "--help" || word === "-h";
const isHelpWord = (word: string): boolean => word === "help" || isHelpSwitch(word);

function help([name]: readonly string[], services: readonly ServiceEntry[]): number {
  if (name === undefined || isHelpWord(name)) {
    print(formatOverview(commands, services));
    return 0;
  }
  const command = commands.find((known) => known.name === name);
  if (!command) return rejectUnknownCommand(name);
  print(formatHelp(command));
  return 0;
}

function rejectUnknownCommand(name: string): number {
  const known = commands.map((command) => command.name).concat("help");
  printError(`There is no command "${name}".${suggest(name, known)}\n\`todoke help\` lists all commands.`);
  return 2;
}

function parse(command: Command, args: readonly string[]): Pick<Invocation, "args" | "switches" | "values"> {
  const options = Object.fromEntries([
    ...Object.keys(command.switches).map((name) => [name, { type: "boolean" }] as const),
    ...Object.keys(command.values ?? {}).map((name) => [name, { type: "string" }] as const),
  ]);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: command.takesArgs });
    const given = Object.entries(values);
    return {
      args: positionals,
      switches: new Set(given.flatMap(([name, value]) => (value === true ? [name] : []))),
      values: Object.fromEntries(given.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []))),
    };
  } catch (error) {
    // Only the first sentence of Node's message helps; the rest explains its own notation.
    throw new UsageError(error instanceof Error ? (error.message.split(/\. /)[0] ?? error.message) : String(error));
  }
}

/** Prints the error and returns the exit code. */
function printFailure(error: unknown, command: Command): number {
  if (error instanceof Stopped) return 0;
  const mark = styled("red", "✗", process.stderr);
  if (error instanceof UsageError) {
    printError(`${mark} ${error.message}`);
    printError(`Usage: ${command.usage}`);
    return 2;
  }
  if (error instanceof SettingsError) {
    for (const each of error.errors) printError(`${mark} ${each}`);
    return 2;
  }
  const expected = error instanceof CommandFailed || isSystemError(error);
  const bug = () => `This is a bug in todoke: ${error instanceof Error ? error.stack : String(error)}`;
  printError(`${mark} ${expected ? error.message : bug()}`);
  return 1;
}

/** An error of the operating system (no permission, disk full). Its message needs no explanation. */
const isSystemError = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && "syscall" in error;
