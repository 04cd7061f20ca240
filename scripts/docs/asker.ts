/** Sends the calls of a guide as the page has them: what stands in `<…>` is what an answer last said under that name. */
import { readCurl } from "./calls.ts";

export function asker(words: Readonly<Record<string, string>>): (command: string) => Promise<unknown> {
  const known = new Map(Object.entries(words));
  return async (command) => {
    const filled = [...known].reduce((text, [name, value]) => text.replaceAll(name, value), command);
    const { url, ...request } = readCurl(filled);
    const answer = await (await fetch(url, request)).text();
    return JSON.parse(answer, (key, value) => {
      if (typeof value === "string") known.set(`<${key}>`, value);
      return value;
    });
  };
}
