import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { groupTests } from "./scripts/test/groups.ts";
import { SlowestFirst } from "./scripts/test/sequencer.ts";

/** `npm run test:quick` sets it. */
const isQuick = process.env.TODOKE_TEST_QUICK === "true";
const { shared, apart, withProcesses } = groupTests();

export default defineConfig({
  test: {
    projects: [
      // Most files share a few processes, which load the code once instead of once per file.
      { extends: true as const, test: { name: "shared", isolate: false, include: [...shared] } },
      // The others have a process each: some kill, stop and starve processes for a living.
      { extends: true as const, test: { name: "apart", include: [...apart, ...(isQuick ? [] : withProcesses)] } },
    ],
    setupFiles: ["./scripts/test/setup.ts"],
    pool: "forks",
    // A file waits half of the time, for an engine or a lease: two or three files for each core keep the machine busy.
    maxWorkers: (isQuick ? 3 : 2) * availableParallelism(),
    sequence: { sequencer: SlowestFirst },
    // What hangs is found all the same; what is slow on a busy machine is not what a test is for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // No test is tried twice within a run. `npm test` runs a file that failed once more, by itself, and tells of it.
    retry: 0,
  },
});
