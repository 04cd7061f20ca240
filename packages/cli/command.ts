/** What a command is: a file in commands/ exports one of these, and cli.ts lists them. */
import type { Env, ServiceEntry } from "./services.ts";

export interface Command {
  readonly name: string;
  /** One line for `todoke help`. */
  readonly summary: string;
  /** How it is called: "todoke serve <service…> [--migrate]". */
  readonly usage: string;
  /** What `todoke help <command>` says: lines of at most 100 characters. */
  readonly details: string;
  /** Its switches by name, each with a line of help. */
  readonly switches: Readonly<Record<string, string>>;
  /** Its options with a value by name, each with what the value is ("<text>") and a line of help. */
  readonly values?: Readonly<Record<string, readonly [value: string, summary: string]>>;
  readonly takesNames: boolean;
  /** Resolves to the exit code. */
  run(call: Call): Promise<number>;
}

export interface Call {
  readonly env: Env;
  readonly services: readonly ServiceEntry[];
  /** What stood on the command line beside switches: services, or the command to help with. */
  readonly names: readonly string[];
  readonly switches: ReadonlySet<string>;
  readonly values: Readonly<Record<string, string>>;
}
