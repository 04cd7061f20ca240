import { defineConfig } from "vitest/config";

/** For vitest.test.ts: tests that are planted to fail. */
export default defineConfig({ test: { include: ["scripts/test/planted/*.planted.ts"], pool: "forks" } });
