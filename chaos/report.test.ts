import { expect, test } from "vitest";
import { check } from "./check.ts";
import type { Evidence } from "./evidence.ts";
import { renderReport, summarize, toText } from "./report.ts";
import type { RunResult } from "./run.ts";
import { soundEvidence } from "./testing.ts";

const resultOf = (evidence: Evidence): RunResult => ({
  options: { seed: "1", bus: "postgres", forMs: 10_000, rate: 80, faultsPerMinute: 30, folder: "somewhere" },
  counts: { commands: 2, answered: 2, requests: 2, unknown: 0 },
  evidence,
  violations: check(evidence),
  tookMs: 12_000,
});

test("the report of a run without violations shows zeros", () => {
  const text = toText(summarize([resultOf(soundEvidence())]));
  expect(text).toMatch(/^lost +0$/m);
  expect(text).toMatch(/^doubled +0$/m);
  expect(text).toMatch(/^commands +2 \(0\/s\)$/m);
  expect(renderReport([resultOf(soundEvidence())])).toContain("Nothing was broken.");
});

test("the report names each violated invariant, its meaning and the findings", () => {
  const result = resultOf({ ...soundEvidence(), arrivals: [] });
  expect(toText(summarize([result]))).toMatch(/^lost +7$/m);
  const page = renderReport([result]);
  expect(page).toContain("**notification-is-sent** (7): every notification is sent, and the receiver has it");
  expect(page).toContain("  - n1 is SENT, but was not received");
});
