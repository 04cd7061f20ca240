import { expect, test } from "vitest";
import { check } from "./check.ts";
import type { Evidence } from "./evidence.ts";
import { asText, reportOf, summaryOf } from "./report.ts";
import type { RunResult } from "./run.ts";
import { allWell } from "./testing.ts";

const resultOf = (evidence: Evidence): RunResult => ({
  options: { seed: "1", bus: "postgres", forMs: 10_000, rate: 80, faultsPerMinute: 30, folder: "somewhere" },
  counts: { commands: 2, answered: 2, requests: 2, unknown: 0 },
  evidence,
  violations: check(evidence),
  tookMs: 12_000,
});

test("a run in which all went well says so, figure by figure", () => {
  const text = asText(summaryOf([resultOf(allWell())]));
  expect(text).toMatch(/^lost +0$/m);
  expect(text).toMatch(/^doubled +0$/m);
  expect(text).toMatch(/^commands +2 \(0\/s\)$/m);
  expect(reportOf([resultOf(allWell())])).toContain("Nothing was broken.");
});

test("what was broken is named, with what it means and what was found", () => {
  const result = resultOf({ ...allWell(), arrivals: [] });
  expect(asText(summaryOf([result]))).toMatch(/^lost +4$/m);
  const page = reportOf([result]);
  expect(page).toContain(
    "**notification-is-sent** (4): every notification was sent in the end, and its receiver has it",
  );
  expect(page).toContain("  - n1 is SENT, and nobody got it");
});
