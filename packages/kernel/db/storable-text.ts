/** Text that PostgreSQL can store. */

/** Cuts the text, and replaces what PostgreSQL refuses: NUL and unpaired surrogates. */
export const toStorableText = (text: string, lengthMax?: number): string =>
  text.slice(0, lengthMax).toWellFormed().replaceAll("\0", "\uFFFD");

// Enough for the first lines of a stack trace; an error must not bloat the table.
const lastErrorMax = 2_000;

/** An error text for a `last_error` column. */
export const toLastError = (text: string): string => toStorableText(text, lastErrorMax);
