import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{packages,services,flows,scripts,bench,chaos}/**/*.test.ts"],
    // Each file is a process of its own: tests here kill, stop and starve processes for a living.
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A flake is a bug. Nothing is tried twice.
    retry: 0,
  },
});
