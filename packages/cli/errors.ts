/** The expected failures of a command. Any other error is a bug and is printed with its stack. */

/** The command failed; the message says what to do about it. Exit code 1. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
}

/** The command line is wrong. Printed with the usage of the command. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Settings are missing or wrong. It has all errors at once, so that they can be corrected together. Exit code 2. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join("\n"));
    this.errors = errors;
  }
}

/** An error with its causes, in one line. */
export function formatError(error: unknown): string {
  if (error instanceof AggregateError && !error.message) return error.errors.map(formatError).join("; ");
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  if (error.cause === undefined) return own;
  const cause = formatError(error.cause);
  return own.includes(cause) ? own : `${own}: ${cause}`;
}
