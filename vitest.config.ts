import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{packages,services,flows,scripts,bench,chaos,examples}/**/*.test.ts"],
    // Each file is a process of its own: tests here kill, stop and starve processes for a living.
    pool: "forks",
    // They mostly wait for engines: two at once are right for two cores too, where Vitest by itself would take one.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // What hangs is found all the same; what is slow on a busy machine is not what a test is for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // A flake is a bug. Nothing is tried twice.
    retry: 0,
  },
});
