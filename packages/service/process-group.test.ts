import { expect, test } from "vitest";
import { findSilent, type GroupAnswer, groupReadiness, type ProcessGroup } from "./process-group.ts";
import type { ReadinessReport } from "./readiness.ts";

const report = (status: ReadinessReport["status"], ok = true, ms = 1): ReadinessReport => ({
  status,
  checks: [{ name: "database", ok, ms }],
});

/** A group whose processes respond with these. */
const groupOf = (...answers: (ReadinessReport | undefined)[]): ProcessGroup => ({
  number: 1,
  ask: async () => answers.map((answer, index) => ({ process: index + 1, answer })) as GroupAnswer<never>[],
  onQuestion() {},
});

test("a command is ready if every process is, and shows the slowest of each check", async () => {
  const ready = await groupReadiness(groupOf(report("ready", true, 2), report("ready", true, 7)), "points");
  expect(ready).toEqual({ status: "ready", checks: [{ name: "database", ok: true, ms: 7 }] });
  const failing = await groupReadiness(groupOf(report("not-ready", false, 9), report("ready", true, 7)), "points");
  expect(failing).toEqual({ status: "not-ready", checks: [{ name: "database", ok: false, ms: 9 }] });
  expect((await groupReadiness(groupOf(report("degraded", false), report("ready")), "points")).status).toBe("degraded");
  expect((await groupReadiness(groupOf(report("ready"), report("stopping")), "points")).status).toBe("stopping");
});

test("a process that does not respond is named", async () => {
  const silent = await groupReadiness(groupOf(report("ready"), undefined), "points");
  expect(silent).toMatchObject({ status: "not-ready", checks: [{ ok: true }, { name: "process-2", ok: false }] });
  expect(
    findSilent([
      { process: 1, answer: true },
      { process: 2, answer: undefined },
    ]),
  ).toEqual([2]);
});
