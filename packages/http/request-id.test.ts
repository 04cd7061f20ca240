import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { newRequestId, readRequestId } from "./request-id.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const given = (id: string) => readRequestId({ headers: { "x-request-id": id } } as unknown as IncomingMessage);

test("ids are unique UUIDs of version 7 that sort by time", () => {
  const ids = Array.from({ length: 50_000 }, newRequestId); // More than one millisecond has room for.
  expect(ids.filter((id) => !uuidV7.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
});

test("an id has the time of its creation", () => {
  const before = Date.now();
  const time = Number.parseInt(newRequestId().replace("-", "").slice(0, 12), 16);
  expect(Math.abs(time - before)).toBeLessThan(10_000);
});

test("a clock that goes back repeats no id", ({ onTestFinished }) => {
  const clock = Date.now;
  onTestFinished(() => {
    Date.now = clock;
  });
  const before = Array.from({ length: 10 }, newRequestId);
  Date.now = () => clock() - 3_600_000;
  const after = Array.from({ length: 10 }, newRequestId);
  expect([...before, ...after].toSorted()).toEqual([...before, ...after]);
});

test("a well-formed id of the caller is kept", () => {
  expect(given("trace-me/1:2")).toBe("trace-me/1:2");
  expect(given("x".repeat(64))).toBe("x".repeat(64));
  for (const unfit of ["", "two words", "x".repeat(65), "café", "a\tb", "a\n"]) expect(given(unfit)).toMatch(uuidV7);
});
