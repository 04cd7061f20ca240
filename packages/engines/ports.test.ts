import { expect, test } from "vitest";
import { findFreePort } from "./ports.ts";

test("free ports are below the range of outgoing connections", async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, () => findFreePort()));
  expect(Math.min(...ports)).toBeGreaterThanOrEqual(20_000);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});
