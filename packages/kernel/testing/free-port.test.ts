import { expect, test } from "vitest";
import { freePort } from "./index.ts";

test("ports that are drawn at once are all different, and none is where another's ops listener goes", async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort));
  expect(new Set(ports.flatMap((port) => [port, port + 1_000])).size).toBe(400);
});
