/** Chooses the language of a response by Accept-Language (RFC 9110, section 12.5.4). English if nothing matches. */
import type { IncomingHttpHeaders } from "node:http";

export type Language = "en" | "ja";

// A browser sends about 50 characters; a longer text is no list of languages.
const headerMax = 200;
const rangePattern = /^\s*([a-z]{1,8}|\*)(?:-[a-z0-9-]{1,30})?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/i;

export function requestLanguage({ headers }: { readonly headers: IncomingHttpHeaders }): Language {
  const ranges = (headers["accept-language"] ?? "").slice(0, headerMax).split(",").map(parseRange);
  const weightOf = (language: Language) =>
    // A named language counts before "*".
    ranges.find(({ tag }) => tag === language)?.weight ?? ranges.find(({ tag }) => tag === "*")?.weight ?? 0;
  return weightOf("ja") > weightOf("en") ? "ja" : "en";
}

function parseRange(text: string): { readonly tag: string; readonly weight: number } {
  const [, tag = "", weight = "1"] = rangePattern.exec(text) ?? [];
  return { tag: tag.toLowerCase(), weight: Math.min(Number(weight), 1) };
}
