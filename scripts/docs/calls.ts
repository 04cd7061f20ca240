/** Reads the calls of a guide: each `sh` block with `curl`, and the response in the `json` block after it. An unknown switch is an error. */

export interface ShownCall {
  /** As on the page. */
  readonly command: string;
  readonly answer: unknown;
}

export const callsOf = (markdown: string): ShownCall[] =>
  [...markdown.matchAll(/^```sh\n(curl [\s\S]*?)\n```\n\n```json\n([\s\S]*?)\n```$/gm)].map(
    ([, command = "", answer = ""]) => ({ command, answer: JSON.parse(answer) }),
  );

/** Every `sh` block of a section in order: a call with its response, or another command. */
export const stepsOf = (markdown: string): (ShownCall | { readonly command: string; readonly answer?: undefined })[] =>
  [...markdown.matchAll(/^```sh\n([\s\S]*?)\n```$(?:\n\n```json\n([\s\S]*?)\n```$)?/gm)].map(
    ([, command = "", answer]) => (answer === undefined ? { command } : { command, answer: JSON.parse(answer) }),
  );

export interface HttpCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function readCurl(command: string): HttpCall {
  const words = splitWords(command);
  const valuesOf = (name: string) => words.flatMap((word, index) => (word === name ? (words[index + 1] ?? []) : []));
  const switches = words.filter((word) => /^-./.test(word));
  const [url, ...more] = words.filter((word, index) => /^https?:/.test(word) && words[index - 1] !== "-d");
  const unknown = switches.filter((name) => !["-s", "-X", "-H", "-d"].includes(name));
  if (words[0] !== "curl" || url === undefined || more.length + unknown.length > 0)
    throw new Error(`cannot be read: ${command}`);
  const [method = "GET"] = valuesOf("-X");
  const [body] = valuesOf("-d");
  const headers = Object.fromEntries(valuesOf("-H").map((header) => header.split(/: (.*)/).slice(0, 2)));
  return { url, method, headers, ...(body !== undefined && { body }) };
}

/** Splits like a shell: quoted or bare words, lines continued by a backslash. */
const splitWords = (command: string): string[] =>
  [...command.matchAll(/\\\n|'([^']*)'|"([^"]*)"|(\S+)/g)].flatMap(
    ([, single, double, bare]) => single ?? double ?? bare ?? [],
  );
