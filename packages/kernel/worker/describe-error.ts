/** The error and its causes in one line, for `last_error`. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `; because ${describeError(error.cause)}`;
  return `${error.name}: ${error.message}${cause}`;
}
