import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { safeReturnPath } from "./return-path.ts";

const origin = "https://play.example";

test.each([
  ["/", "/"],
  ["/profile", "/profile"],
  ["/games/7?tab=scores&next=%2Fhome", "/games/7?tab=scores&next=%2Fhome"],
  ["/a/./b/../c", "/a/c"],
  ["/search?q=%E5%B1%8A%E3%81%91", "/search?q=%E5%B1%8A%E3%81%91"],
  ["/page#part", "/page"],
])("a path of our own is kept: %s", (asked, kept) => {
  expect(safeReturnPath(asked, origin)).toBe(kept);
});

test.each([
  "//evil.example",
  "///evil.example",
  "/\\evil.example",
  "\\/evil.example",
  "\\\\evil.example",
  "https:evil.example",
  "https://evil.example",
  "https:/evil.example",
  "/%2f%2fevil.example",
  "/%2F/evil.example",
  "/%5cevil.example",
  "/%255cevil.example",
  "/%252f%252fevil.example",
  "/\t/evil.example",
  "/%09/evil.example",
  "/\n/evil.example",
  "/%0d%0aSet-Cookie:x=1",
  "/\r\nSet-Cookie: x=1",
  "javascript:alert(1)",
  "data:text/html,x",
  "http://play.example@evil.example",
  "https://play.example.evil.example",
  "https://play.example@evil.example",
  "//play.example@evil.example",
  "。。/evil.example",
  "/。/evil.example",
  "//evil。example",
  "..//evil.example",
  "/..//evil.example",
  "/.//evil.example",
  "/%2e%2e//evil.example",
  "/a/..//evil.example",
  " //evil.example",
  "/ /evil.example",
  "\u0000//evil.example",
  "\u202e/evil",
  "play",
  "",
  `/${"a".repeat(10_000)}`,
  "/login",
  "/login/callback?code=1",
  "/logout",
])("any other value becomes the front page: %j", (asked) => {
  expect(safeReturnPath(asked, origin)).toBe("/");
});

test("without returnTo a login ends at the front page", () => {
  expect(safeReturnPath(undefined, origin)).toBe("/");
});

const pieces = [
  "/",
  "//",
  "\\",
  "..",
  ".",
  "%2f",
  "%5c",
  "%09",
  "%2e",
  "@",
  ":",
  "?",
  "#",
  "evil.example",
  "https:",
  "a",
  "。",
  "\t",
  "\n",
  " ",
];
const asked = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join("")),
  fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => `/${parts.join("")}`),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.webUrl(),
);

test("no generated returnTo leaves our origin, however often it is decoded", () => {
  fc.assert(
    fc.property(asked, (text) => {
      const path = safeReturnPath(text, origin);
      expect(new URL(path, origin).origin).toBe(origin);
      expect(path).toMatch(/^\/(?!\/)[\x21-\x7e]*$/);
      const { pathname } = new URL(path, origin);
      expect(new URL(decodeURIComponent(pathname), origin).origin).toBe(origin);
    }),
    { numRuns: repetitions(5_000) },
  );
});
