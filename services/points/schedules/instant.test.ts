import { expect, test } from "vitest";
import { parseInstant } from "./instant.ts";

test.each<[string, string, string | undefined]>([
  ["an offset", "2026-01-15T10:00:00+09:00", "2026-01-15T01:00:00.000000Z"],
  ["a 45-minute offset", "2026-01-15T10:00:00+05:45", "2026-01-15T04:15:00.000000Z"],
  ["midnight in another year", "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"],
  ["a leap day", "2028-02-29T23:59:59.5Z", "2028-02-29T23:59:59.500000Z"],
  ["29 February in a common year", "2026-02-29T00:00:00Z", undefined],
  ["an offset over the end of a month", "2026-04-30T23:00:00-02:00", "2026-05-01T01:00:00.000000Z"],
  ["31 April", "2026-04-31T00:00:00Z", undefined],
  ["nanoseconds, rounded up", "2026-01-01T00:00:00.123456001Z", "2026-01-01T00:00:00.123457Z"],
  ["the end of 9999", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
  ["past the end of 9999", "9999-12-31T23:59:59-00:01", undefined],
  ["past the end of 9999 by rounding", "9999-12-31T23:59:59.9999999Z", undefined],
  ["the year 1", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"],
  ["before the year 1", "0001-01-01T00:00:00+00:01", undefined],
  ["no offset", "2026-01-15T10:00:00", undefined],
  ["not a time", "tomorrow", undefined],
])("a time is parsed: %s", (_, text, expected) => {
  expect(parseInstant(text, "microsecond")).toBe(expected);
});
