import { expect, test } from "vitest";
import { lastKnown } from "./last-known.ts";

const answer = (body: string) => ({ body, asOf: "2026-01-08T07:10:00Z" });

test("what is too old, too long, or pushed out by others is not known any more", () => {
  const clock = { ms: 0 };
  const known = lastKnown({ usersMax: 2, ageMaxMs: 1_000, now: () => clock.ms });
  known.remember("a", answer("1"));
  known.remember("b", answer("2"));
  known.remember("a", answer("3"));
  known.remember("c", answer("4"));
  expect(["a", "b", "c"].map((id) => known.recall(id)?.body)).toEqual(["3", undefined, "4"]);
  known.remember("c", answer("x".repeat(20_000)));
  expect(known.recall("c")).toBeUndefined();
  clock.ms = 1_000;
  expect(known.recall("a")?.body).toBe("3");
  clock.ms = 1_001;
  expect(known.recall("a")).toBeUndefined();
});
