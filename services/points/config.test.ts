import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

function read(env: Record<string, string>) {
  const errors: string[] = [];
  return { settings: readSettings(env, errors), errors };
}

test("defaults: scheduler every 10 s, at most 20,000 reservations in flight", () => {
  expect(read({})).toEqual({ settings: { schedulerMs: 10_000, inFlightMax: 20_000 }, errors: [] });
  const env = { POINTS_SCHEDULER_SECONDS: "1", POINTS_IN_FLIGHT_MAX: "500" };
  expect(read(env)).toEqual({ settings: { schedulerMs: 1_000, inFlightMax: 500 }, errors: [] });
});

test("each invalid setting is reported with a sentence", () => {
  expect(read({ POINTS_SCHEDULER_SECONDS: "0.5", POINTS_IN_FLIGHT_MAX: "none" }).errors).toEqual([
    'POINTS_SCHEDULER_SECONDS is "0.5" and should be a whole number from 1 to 3600',
    'POINTS_IN_FLIGHT_MAX is "none" and should be a whole number from 1 to 1000000',
  ]);
});
