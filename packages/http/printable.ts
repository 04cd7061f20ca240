/** Makes a caller's text safe to print in responses and log lines. */

// JSON does not escape these; terminals, log viewers and browsers may interpret them.
const interpreted = /[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** For text that becomes JSON: escapes what JSON leaves as it is. */
export function printable(text: string): string {
  return text.replace(interpreted, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const quotedMax = 64;

/** Shortened and quoted, with control characters and lone surrogates escaped. */
export function quoted(text: string): string {
  const short = text.length > quotedMax ? `${text.slice(0, quotedMax)}…` : text;
  return printable(JSON.stringify(short));
}
