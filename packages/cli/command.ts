/** A command. Each file in commands/ exports one, and cli.ts lists them. */
import type { Env, ServiceEntry } from "./services.ts";

export interface Command {
  readonly name: string;
  /** One line for `todoke help`. */
  readonly summary: string;
  /** "todoke serve <service…> [--migrate]" */
  readonly usage: string;
  /** Text of `todoke help <command>`, in lines of at most 120 characters. */
  readonly details: string;
  /** Its options without a value, each with a line of help. */
  readonly switches: Readonly<Record<string, string>>;
  /** Its options with a value, each with a placeholder ("<text>") and a line of help. */
  readonly values?: Readonly<Record<string, readonly [value: string, summary: string]>>;
  readonly takesArgs: boolean;
  /** Resolves to the exit code. */
  run(call: Invocation): Promise<number>;
}

export interface Invocation {
  readonly env: Env;
  readonly services: readonly ServiceEntry[];
  /** The positional arguments: a subcommand, services, ids. */
  readonly args: readonly string[];
  readonly switches: ReadonlySet<string>;
  readonly values: Readonly<Record<string, string>>;
}
