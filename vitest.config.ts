import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./scripts/test/sequencer.ts";

export default defineConfig({
  test: {
    include: ["{packages,services,flows,scripts,bench,chaos,examples}/**/*.test.ts"],
    setupFiles: ["./scripts/test/count-processes.ts"],
    // Each file is a process of its own: tests here kill, stop and starve processes for a living.
    pool: "forks",
    // Half of the time a file waits, for an engine or a lease: two files for each core keep the machine busy.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: SlowestFirst },
    // What hangs is found all the same; what is slow on a busy machine is not what a test is for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // No test is tried twice within a run. `npm test` runs a file that failed once more, by itself, and tells of it.
    retry: 0,
  },
});
