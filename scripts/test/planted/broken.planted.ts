import { expect, test } from "vitest";

test("fails always", () => {
  expect(1).toBe(2);
});
