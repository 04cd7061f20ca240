/**
 * Which language a client is answered in, by its Accept-Language (RFC 9110, section 12.5.4). English is what is left when
 * nothing fits: an answer in the wrong language is better than none.
 */
import type { IncomingHttpHeaders } from "node:http";

const languages = ["en", "ja"] as const;
export type Language = (typeof languages)[number];

// A browser sends some 50 characters; what is longer is no list of languages.
const headerMax = 200;
const range = /^\s*([a-z]{1,8}|\*)(?:-[a-z0-9-]{1,30})?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/i;

export function languageOf({ headers }: { readonly headers: IncomingHttpHeaders }): Language {
  const wished = (headers["accept-language"] ?? "").slice(0, headerMax).split(",").map(wishIn);
  const weightOf = (language: Language) =>
    // What is named counts before what is left to "anything".
    wished.find(({ tag }) => tag === language)?.weight ?? wished.find(({ tag }) => tag === "*")?.weight ?? 0;
  return weightOf("ja") > weightOf("en") ? "ja" : "en";
}

function wishIn(text: string): { readonly tag: string; readonly weight: number } {
  const [, tag = "", weight = "1"] = range.exec(text) ?? [];
  return { tag: tag.toLowerCase(), weight: Math.min(Number(weight), 1) };
}
