import { expect, test } from "vitest";
import { faults } from "./faults/index.ts";
import { makeSchedule } from "./schedule.ts";
import { busKinds } from "./settings.ts";

const hour = { forMs: 60 * 60_000, perMinute: 30 };

test.each(busKinds)("%s: a seed determines the schedule", (bus) => {
  const schedule = makeSchedule({ seed: "7", bus, ...hour });
  expect(makeSchedule({ seed: "7", bus, ...hour })).toEqual(schedule);
  expect(makeSchedule({ seed: "8", bus, ...hour })).not.toEqual(schedule);
});

test.each(busKinds)("%s: ten hours contain every fault for every target", (bus) => {
  const schedule = makeSchedule({ seed: "7", bus, ...hour, forMs: 10 * hour.forMs });
  const processes = ["entitlement_1", "entitlement_2", "notification_1", "notification_2"];
  const plan = { bus, processes: processes.map((name) => ({ name, service: name.slice(0, -2) })) };
  const wanted = faults.flatMap((fault) => fault.targets(plan).map((target) => `${fault.name} ${target}`));
  const planned = new Set(schedule.map(({ fault, target }) => `${fault} ${target}`));
  expect(wanted.filter((each) => !planned.has(each))).toEqual([]);
});

test("the number of faults is within a fifth of the requested rate", () => {
  const schedule = makeSchedule({ seed: "7", bus: "nats", ...hour });
  expect(schedule.length).toBeGreaterThan(0.8 * 30 * 60);
  expect(schedule.length).toBeLessThan(1.2 * 30 * 60);
});

test("faults of one target do not overlap", () => {
  const schedule = makeSchedule({ seed: "7", bus: "postgres", ...hour });
  const byTarget = Map.groupBy(schedule, ({ target }) => target);
  for (const steps of byTarget.values()) {
    steps.slice(1).forEach((step, n) => {
      const before = steps[n];
      expect(step.atMs).toBeGreaterThanOrEqual((before?.atMs ?? 0) + (before?.forMs ?? 0));
    });
  }
});
