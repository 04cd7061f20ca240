/**
 * Text that the database can keep, and keeps as it came. PostgreSQL refuses NUL, and a driver turns half of a surrogate
 * pair into U+FFFD without a word; other control characters have no business in an API and much in an attack on a log.
 */
import { quoted } from "./printable.ts";

// All of C0 but tab, line feed and carriage return.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to refuse.
const refusedControl = /[\0-\x08\x0b\x0c\x0e-\x1f]/;

/** Says what is wrong, to follow the name of the field; undefined when the text can be kept. */
export function unkeepable(text: string): string | undefined {
  const control = refusedControl.exec(text)?.[0];
  if (control !== undefined) return `contains the control character ${quoted(control)}`;
  if (!text.isWellFormed()) return "contains half of a surrogate pair, which is no character";
  return undefined;
}
