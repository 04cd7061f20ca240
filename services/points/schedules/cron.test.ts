import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CronError, parseCron } from "./cron.ts";

const at = (text: string) => Temporal.Instant.from(text);

/** The next `many` occurrences, in UTC. */
function nexts(cron: string, zone: string, after: string, many: number): string[] {
  const { next } = parseCron(cron, zone);
  const found: string[] = [];
  for (let from: Temporal.Instant | undefined = at(after); from && found.length < many; ) {
    from = next(from);
    if (from) found.push(from.toString());
  }
  return found;
}

test.each<[string, string, string, string, string[]]>([
  [
    "every morning in Tokyo",
    "0 10 * * *",
    "Asia/Tokyo",
    "2026-01-15T00:59:59Z",
    ["2026-01-15T01:00:00Z", "2026-01-16T01:00:00Z"],
  ],
  [
    "an occurrence is after the given time, never at it",
    "0 10 * * *",
    "Asia/Tokyo",
    "2026-01-15T01:00:00Z",
    ["2026-01-16T01:00:00Z"],
  ],
  ["leap days", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", ["2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"]],
  ["a leap day that is a Sunday", "0 0 29 2 */7", "UTC", "2088-03-01T00:00:00Z", ["2128-02-29T00:00:00Z"]],
  ["the 31st", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", ["2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]],
  [
    "the last day of the month",
    "0 0 L * *",
    "UTC",
    "2028-01-31T12:00:00Z",
    ["2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z", "2028-04-30T00:00:00Z"],
  ],
  [
    "the first of the month when UTC is still in the previous month",
    "0 0 1 * *",
    "Asia/Tokyo",
    "2026-02-01T00:00:00Z",
    ["2026-02-28T15:00:00Z"],
  ],
  ["weekdays by name", "30 9 * * MON-FRI", "UTC", "2026-01-16T10:00:00Z", ["2026-01-19T09:30:00Z"]],
  ["Sunday as 7", "0 0 * * 7", "UTC", "2026-01-15T00:00:00Z", ["2026-01-18T00:00:00Z"]],
  [
    "day of the month or day of the week",
    "0 0 13 * FRI",
    "UTC",
    "2026-01-10T00:00:00Z",
    ["2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"],
  ],
  ["steps", "5/20 */12 * * *", "UTC", "2026-01-10T00:30:00Z", ["2026-01-10T00:45:00Z", "2026-01-10T12:05:00Z"]],
  ["a zone with a 45-minute offset", "0 6 * * *", "Asia/Kathmandu", "2026-01-10T00:00:00Z", ["2026-01-10T00:15:00Z"]],
])("%s", (_, cron, zone, after, expected) => {
  expect(nexts(cron, zone, after, expected.length)).toEqual(expected);
});

test("a local time that daylight saving skips runs once, at the change", () => {
  // New York: from 02:00 to 03:00 on 8 March 2026, which is 07:00 in UTC.
  expect(nexts("30 2 * * *", "America/New_York", "2026-03-07T08:00:00Z", 2)).toEqual([
    "2026-03-08T07:00:00Z",
    "2026-03-09T06:30:00Z",
  ]);
  expect(nexts("0,30 2,3 8 3 *", "America/New_York", "2026-03-08T00:00:00Z", 2)).toEqual([
    "2026-03-08T07:00:00Z",
    "2026-03-08T07:30:00Z",
  ]);
  // Samoa went from 29 to 31 December 2011.
  expect(nexts("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 1)).toEqual(["2011-12-30T10:00:00Z"]);
});

test("a local time that occurs twice runs the first time", () => {
  // New York: from 02:00 back to 01:00 on 1 November 2026, which is 06:00 in UTC.
  expect(nexts("30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 2)).toEqual([
    "2026-11-01T05:30:00Z",
    "2026-11-02T06:30:00Z",
  ]);
  expect(nexts("0 * * * *", "America/New_York", "2026-11-01T04:30:00Z", 2)).toEqual([
    "2026-11-01T05:00:00Z",
    "2026-11-01T07:00:00Z",
  ]);
});

test("there is no occurrence after the year 9999", () => {
  expect(nexts("0 0 1 * *", "UTC", "9999-11-15T00:00:00Z", 5)).toEqual(["9999-12-01T00:00:00Z"]);
  expect(nexts("59 23 31 12 *", "America/New_York", "9999-06-01T00:00:00Z", 5)).toEqual([]);
});

test("occurrences increase strictly in every time zone", () => {
  const zone = fc.constantFrom("UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia");
  const cron = fc.constantFrom("*/7 * * * *", "30 2 * * *", "0 */3 * * *", "15 1 * * SUN");
  const day = fc.integer({ min: 0, max: 365 * 20 });
  fc.assert(
    fc.property(cron, zone, day, (text, timeZone, days) => {
      const found = nexts(
        text,
        timeZone,
        at("2010-01-01T00:00:00Z")
          .add({ hours: 24 * days })
          .toString(),
        4,
      );
      expect(found).toEqual([...new Set(found)].sort());
      expect(found).toHaveLength(4);
    }),
    { numRuns: repetitions(200) },
  );
});

test.each<[string, string, string]>([
  ["* * * *", "UTC", "five fields"],
  ["* * * * * *", "UTC", "five fields"],
  ["60 * * * *", "UTC", `"60" is not a valid minute (0 to 59)`],
  ["* 24 * * *", "UTC", `"24" is not a valid hour (0 to 23)`],
  ["* * 0 * *", "UTC", `"0" is not a valid day of the month (1 to 31)`],
  ["* * * FOO *", "UTC", `"FOO" is not a valid month (1 to 12)`],
  ["5-1 * * * *", "UTC", `"5-1" is not a valid minute`],
  ["*/0 * * * *", "UTC", `"*/0" is not a valid minute`],
  ["1,,2 * * * *", "UTC", `"" is not a valid minute`],
  ["0 0 30 2 *", "UTC", "has no occurrence"],
  [`${"0,".repeat(200)}0 * * * *`, "UTC", "five fields"],
  ["* * * * *", "Mars/Olympus", "time_zone must be the name"],
  ["* * * * *", "+09:00", "time_zone must be the name"],
  ["* * * * *", "", "time_zone must be the name"],
])("the cron %s in %s is refused with a reason", (cron, zone, message) => {
  expect(() => parseCron(cron, zone)).toThrow(CronError);
  expect(() => parseCron(cron, zone)).toThrow(message);
});
