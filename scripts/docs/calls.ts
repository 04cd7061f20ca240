/**
 * The calls that a guide shows: each `sh` block that begins with `curl`, and the answer in the `json` block after it. Only the
 * few switches that our guides use are understood; another one is an error, never left out.
 */

export interface ShownCall {
  /** As it stands on the page. */
  readonly command: string;
  readonly answer: unknown;
}

export const callsOf = (markdown: string): ShownCall[] =>
  [...markdown.matchAll(/^```sh\n(curl [\s\S]*?)\n```\n\n```json\n([\s\S]*?)\n```$/gm)].map(
    ([, command = "", answer = ""]) => ({ command, answer: JSON.parse(answer) }),
  );

export interface HttpCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function readCurl(command: string): HttpCall {
  const words = wordsOf(command);
  const taken = (name: string) => words.flatMap((word, place) => (word === name ? (words[place + 1] ?? []) : []));
  const switches = words.filter((word) => /^-./.test(word));
  const [url, ...more] = words.filter((word, place) => /^https?:/.test(word) && words[place - 1] !== "-d");
  const unknown = switches.filter((name) => !["-s", "-X", "-H", "-d"].includes(name));
  if (words[0] !== "curl" || url === undefined || more.length + unknown.length > 0)
    throw new Error(`cannot be read: ${command}`);
  const [method = "GET"] = taken("-X");
  const [body] = taken("-d");
  const headers = Object.fromEntries(taken("-H").map((header) => header.split(/: (.*)/).slice(0, 2)));
  return { url, method, headers, ...(body !== undefined && { body }) };
}

/** As a shell takes them apart: quoted or bare, over lines that end in a backslash. */
const wordsOf = (command: string): string[] =>
  [...command.matchAll(/\\\n|'([^']*)'|"([^"]*)"|(\S+)/g)].flatMap(
    ([, single, double, bare]) => single ?? double ?? bare ?? [],
  );
