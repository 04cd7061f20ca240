/**
 * Text that the database stores unchanged. PostgreSQL rejects NUL, and the driver silently turns half of a surrogate pair into
 * U+FFFD; other control characters have no use in an API and are used to attack logs.
 */
import { quoted } from "./printable.ts";

// All of C0 but tab, line feed and carriage return.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to reject.
const rejectedControl = /[\0-\x08\x0b\x0c\x0e-\x1f]/;

/** The error, as a sentence that follows the name of the field; undefined if the text can be stored. */
export function storageError(text: string): string | undefined {
  const control = rejectedControl.exec(text)?.[0];
  if (control !== undefined) return `contains the control character ${quoted(control)}`;
  if (!text.isWellFormed()) return "contains half of a surrogate pair, which is no character";
  return undefined;
}
