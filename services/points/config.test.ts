import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

function read(env: Record<string, string>) {
  const errors: string[] = [];
  return { settings: readSettings(env, errors), errors };
}

const dayMs = 24 * 3_600_000;

test("defaults: scheduler every 10 s, 20,000 in flight, processed events kept for 14 days", () => {
  expect(read({})).toEqual({
    settings: { schedulerMs: 10_000, inFlightMax: 20_000, processedKeepMs: 14 * dayMs },
    errors: [],
  });
  const env = { POINTS_SCHEDULER_SECONDS: "1", POINTS_IN_FLIGHT_MAX: "500", POINTS_PROCESSED_KEEP_DAYS: "30" };
  expect(read(env)).toEqual({
    settings: { schedulerMs: 1_000, inFlightMax: 500, processedKeepMs: 30 * dayMs },
    errors: [],
  });
});

test("each invalid setting is reported with a sentence", () => {
  expect(read({ POINTS_SCHEDULER_SECONDS: "0.5", POINTS_IN_FLIGHT_MAX: "none" }).errors).toEqual([
    'POINTS_SCHEDULER_SECONDS is "0.5" and should be a whole number from 1 to 3600',
    'POINTS_IN_FLIGHT_MAX is "none" and should be a whole number from 1 to 1000000',
  ]);
  expect(read({ POINTS_PROCESSED_KEEP_DAYS: "13" }).errors).toEqual([
    expect.stringMatching(/^POINTS_PROCESSED_KEEP_DAYS is too small: .* keep them at least 14 days$/),
  ]);
});
