import { expect, test } from "vitest";
import { requestLanguage } from "./accept-language.ts";

test.each([
  [undefined, "en"],
  ["", "en"],
  ["ja", "ja"],
  ["ja-JP,ja;q=0.9,en;q=0.8", "ja"],
  ["JA-jp", "ja"],
  ["en-US,en;q=0.9,ja;q=0.8", "en"],
  ["fr,ja;q=0.5", "ja"],
  ["fr", "en"],
  ["*", "en"],
  ["en;q=0, *;q=0.5", "ja"],
  ["ja;q=0", "en"],
  ["ja;q=0.5, en;q=0.51", "en"],
  ["ja ; q = 0.9 , en ; q=0.1", "ja"],
  ["ja;q=7", "en"],
  ["jargon", "en"],
  [`${"a-".repeat(10_000)},ja`, "en"],
])("Accept-Language %j selects %s", (header, language) => {
  expect(requestLanguage({ headers: header === undefined ? {} : { "accept-language": header } })).toBe(language);
});
