/** A caller's text inside our own answers and log lines: it can be read, and it can do nothing else. */

// JSON leaves these as they are; terminals, log viewers and browsers may obey them.
const obeyed = /[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Escapes what JSON would leave alone: for text that becomes JSON anyway. */
export function printable(text: string): string {
  return text.replace(obeyed, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const quotedMax = 64;

/** Short and in quotes, with control characters and half characters escaped. */
export function quoted(text: string): string {
  const short = text.length > quotedMax ? `${text.slice(0, quotedMax)}…` : text;
  return printable(JSON.stringify(short));
}
