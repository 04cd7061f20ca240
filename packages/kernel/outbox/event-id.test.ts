import { expect, test } from "vitest";
import { newEventId } from "./event-id.ts";

test("an event ID is a UUID v7 of now, and no two are equal", () => {
  const before = Date.now();
  const ids = Array.from({ length: 1_000 }, newEventId);
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const at = Number.parseInt(id.replace("-", "").slice(0, 12), 16);
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
  }
  expect(new Set(ids).size).toBe(1_000);
});
