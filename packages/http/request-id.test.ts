import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { newRequestId, requestIdOf } from "./request-id.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const given = (id: string) => requestIdOf({ headers: { "x-request-id": id } } as unknown as IncomingMessage);

test("ids are UUIDs of version 7, all different, and sort as they were made", () => {
  const ids = Array.from({ length: 50_000 }, newRequestId); // More than one millisecond has room for.
  expect(ids.filter((id) => !uuidV7.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
});

test("an id says when it was made", () => {
  const before = Date.now();
  const time = Number.parseInt(newRequestId().replace("-", "").slice(0, 12), 16);
  expect(Math.abs(time - before)).toBeLessThan(10_000);
});

test("a clock that is set back makes no id twice", ({ onTestFinished }) => {
  const clock = Date.now;
  onTestFinished(() => {
    Date.now = clock;
  });
  const before = Array.from({ length: 10 }, newRequestId);
  Date.now = () => clock() - 3_600_000;
  const after = Array.from({ length: 10 }, newRequestId);
  expect([...before, ...after].toSorted()).toEqual([...before, ...after]);
});

test("a caller's own id is kept when it is fit for a log", () => {
  expect(given("trace-me/1:2")).toBe("trace-me/1:2");
  expect(given("x".repeat(64))).toBe("x".repeat(64));
  for (const unfit of ["", "two words", "x".repeat(65), "café", "a\tb", "a\n"]) expect(given(unfit)).toMatch(uuidV7);
});
