import { expect, test } from "vitest";
import { readSettings } from "./config.ts";

function read(env: Record<string, string>) {
  const faults: string[] = [];
  return { settings: readSettings(env, faults), faults };
}

test("without a word the scheduler looks every ten seconds and keeps 20,000 under way, and each can be said otherwise", () => {
  expect(read({})).toEqual({
    settings: { schedulerMs: 10_000, inFlightMax: 20_000 },
    faults: [],
  });
  const env = { POINTS_SCHEDULER_SECONDS: "1", POINTS_IN_FLIGHT_MAX: "500" };
  expect(read(env)).toEqual({
    settings: { schedulerMs: 1_000, inFlightMax: 500 },
    faults: [],
  });
});

test("what cannot be meant is told, a sentence each", () => {
  expect(read({ POINTS_SCHEDULER_SECONDS: "0.5", POINTS_IN_FLIGHT_MAX: "none" }).faults).toEqual([
    'POINTS_SCHEDULER_SECONDS is "0.5" and should be a whole number from 1 to 3600',
    'POINTS_IN_FLIGHT_MAX is "none" and should be a whole number from 1 to 1000000',
  ]);
});
