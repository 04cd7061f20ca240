import { expect, test } from "vitest";
import { freePort } from "./index.ts";

test("concurrent calls return distinct ports, and none is the ops port of another", async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort));
  expect(new Set(ports.flatMap((port) => [port, port + 1_000])).size).toBe(400);
});
