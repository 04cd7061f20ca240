import { expect, test } from "vitest";
import { formatJson, parseJson } from "./json.ts";

test("amounts past 2^53 keep every digit, also when they are sent back", () => {
  const text = '{"balance":9223372036854775807,"small":-12,"text":"9007199254740993","list":[9007199254740993]}';
  expect(parseJson(text)).toEqual({
    balance: 9223372036854775807n,
    small: -12,
    text: "9007199254740993",
    list: [9007199254740993n],
  });
  expect(JSON.stringify(JSON.parse(formatJson(parseJson(text))))).toBe(JSON.stringify(JSON.parse(text)));
  expect(formatJson(parseJson(text))).toContain("9223372036854775807");
});

test("a number that is no integer, or too large for any amount, is shown and breaks nothing", () => {
  expect(parseJson('{"a":1.5,"b":1e400}')).toEqual({ a: 1.5, b: Number.POSITIVE_INFINITY });
  expect(formatJson(parseJson("1e400"))).toBe("null");
});
