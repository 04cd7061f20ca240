import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runTests } from "./vitest.ts";

async function runPlanted(...names: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "todoke-planted-"));
  try {
    return await runTests({
      args: ["--config=scripts/test/planted/vitest.config.ts", ...names],
      env: { PLANTED_FOLDER: folder },
      signal: new AbortController().signal,
      output: "ignore",
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a file that fails and then passes by itself is named as flaky, with its test and error, and fails no run", async () => {
  const { notes, ...counts } = await runPlanted("flaky", "sound");
  expect(counts).toEqual({ passed: 2, failed: 0, skipped: 0 });
  expect(notes.slice(-2)).toEqual([
    "Flaky: failed at first, passed when run again (docs/guides/flaky-tests.md):",
    "  scripts/test/planted/flaky.planted.ts > fails at first: expected false to be true // Object.is equality",
  ]);
});

test("a file that fails twice has failed, and is not called flaky", async () => {
  const { notes, ...counts } = await runPlanted();
  expect(counts).toEqual({ passed: 2, failed: 1, skipped: 0 });
  expect(notes.join("\n")).not.toContain("broken");
});
