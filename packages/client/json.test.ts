import { expect, test, vi } from "vitest";
import { formatJson, parseJson } from "./json.ts";

const most = 2n ** 63n - 1n;

test("an int64 is read to the last digit, whatever its size", () => {
  expect(parseJson(`{"balance":${most},"held":0,"point_amount":-${most}}`)).toEqual({
    balance: most,
    held: 0n,
    point_amount: -most,
  });
});

test("other values stay as JSON has them", () => {
  const value = {
    status: 200,
    text: "9",
    balance: "7",
    as_of: "2026-01-01T00:00:00Z",
    list: [1, null, true],
    qty: 1.5,
  };
  expect(parseJson(JSON.stringify(value))).toEqual(value);
});

test("objects with names of their own have numbers", () => {
  const session = { version: 3, parts: [{ balance: 1 }] };
  expect(parseJson(JSON.stringify({ session, version: 3 }))).toEqual({ session, version: 3n });
});

test("an int64 is written as digits", () => {
  expect(formatJson({ point_amount: most, at: undefined })).toBe(`{"point_amount":"${most}"}`);
});

test("an engine that does not pass the digits reads small integers, and refuses to round large ones", () => {
  const parse = JSON.parse;
  using spy = vi.spyOn(JSON, "parse").mockImplementation((text, reviver) =>
    parse(text, function (this: unknown, key, value) {
      return reviver?.call(this, key, value);
    }),
  );
  expect(parseJson('{"balance":5}')).toEqual({ balance: 5n });
  expect(() => parseJson(`{"balance":${most}}`)).toThrow("balance is past 2^53");
  expect(spy).toHaveBeenCalledTimes(2);
});
