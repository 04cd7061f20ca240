/** The ways a command ends other than well. Anything else that is thrown is a bug, and shown with its stack. */

/** It could not be done, and the message says what to do about it. Exit code 1. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
}

/** It was not asked for in a way that can be understood. The command's usage is shown with it. Exit code 2. */
export class Misused extends Error {
  override readonly name = "Misused";
}

/** The environment is not fit: every fault of it at once, so that it is mended once. Exit code 2. */
export class Misconfigured extends Error {
  override readonly name = "Misconfigured";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

/** An error in one line, with the causes that led to it. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && !error.message) return error.errors.map(reasonOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  if (error.cause === undefined) return own;
  const deeper = reasonOf(error.cause);
  return own.includes(deeper) ? own : `${own}: ${deeper}`;
}
