import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { perSecond } from "./per-second.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a flood is one line at once, then one per second with the count and the newest event", () => {
  const lines: (readonly [number, number])[] = [];
  const tell = perSecond<number>({ max: 1, write: (event, count) => void lines.push([event, count]) });
  for (let n = 1; n <= 1_000; n++) tell(n);
  expect(lines).toEqual([[1, 1]]);
  vi.advanceTimersByTime(1_000);
  expect(lines).toEqual([
    [1, 1],
    [1_000, 999],
  ]);
  // The line with the count is the line of its second.
  for (let n = 1; n <= 10; n++) tell(n);
  expect(lines.length).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(2)).toEqual([[10, 10]]);
});

test("slow events are written one by one", () => {
  const counts: number[] = [];
  const tell = perSecond<string>({ max: 2, write: (_, count) => void counts.push(count) });
  for (let second = 0; second < 3; second++) {
    tell("a");
    tell("b");
    vi.advanceTimersByTime(1_000);
  }
  expect(counts).toEqual([1, 1, 1, 1, 1, 1]);
});
