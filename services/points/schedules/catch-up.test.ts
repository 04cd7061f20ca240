import { expect, test } from "vitest";
import { type CatchUp, nextOccurrence } from "./catch-up.ts";
import { parseCron } from "./cron.ts";

test.each<[string, CatchUp, string, string | undefined]>([
  ["a due occurrence runs: all", "all", "2026-01-10T00:01:00Z", "2026-01-10T00:00:00Z"],
  ["a due occurrence runs: latest", "latest", "2026-01-10T00:01:00Z", "2026-01-10T00:00:00Z"],
  ["a due occurrence runs: none", "none", "2026-01-10T00:01:00Z", "2026-01-10T00:00:00Z"],
  ["a year late, all runs the first missed", "all", "2027-01-10T12:00:00Z", "2026-01-10T00:00:00Z"],
  ["a year late, latest runs the last midnight", "latest", "2027-01-10T12:00:00Z", "2027-01-10T00:00:00Z"],
  ["a year late, none waits for the next midnight", "none", "2027-01-10T12:00:00Z", "2027-01-11T00:00:00Z"],
  ["two minutes late, none runs that midnight", "none", "2027-01-10T00:02:00Z", "2027-01-10T00:00:00Z"],
  ["after the last occurrence, latest runs that one", "latest", "+010000-01-05T00:00:00Z", "9999-12-31T00:00:00Z"],
  ["after the last occurrence, none has no next", "none", "+010000-01-05T00:00:00Z", undefined],
])("%s", (_, catchUp, now, expected) => {
  const occurrence = nextOccurrence({ nextRunAt: "2026-01-10T00:00:00Z", now, catchUp }, parseCron("0 0 * * *", "UTC"));
  expect(occurrence?.toString()).toBe(expected);
});
