import { expect, test } from "vitest";
import { withTimeout } from "./with-timeout.ts";

test("a promise that settles in time keeps its result, and a late one is rejected with the given error", async () => {
  const never = new Promise<never>(() => {});
  expect(await withTimeout(60_000, Promise.resolve("in time"))).toBe("in time");
  await expect(withTimeout(60_000, Promise.reject(new Error("its own")))).rejects.toThrow("its own");
  await expect(withTimeout(1, never)).rejects.toThrow("no response within 1 ms");
  await expect(withTimeout(1, never, () => new RangeError("late"))).rejects.toThrow(RangeError);
});
