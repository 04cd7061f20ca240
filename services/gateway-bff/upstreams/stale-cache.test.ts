import { expect, test } from "vitest";
import { staleCache } from "./stale-cache.ts";

const answer = (body: string) => ({ body, asOf: "2026-01-08T07:10:00Z" });

test("entries that are too old, too long or evicted are not returned", () => {
  const clock = { ms: 0 };
  const known = staleCache({ usersMax: 2, ageMaxMs: 1_000, now: () => clock.ms });
  known.set("a", answer("1"));
  known.set("b", answer("2"));
  known.set("a", answer("3"));
  known.set("c", answer("4"));
  expect(["a", "b", "c"].map((id) => known.get(id)?.body)).toEqual(["3", undefined, "4"]);
  known.set("c", answer("x".repeat(20_000)));
  expect(known.get("c")).toBeUndefined();
  clock.ms = 1_000;
  expect(known.get("a")?.body).toBe("3");
  clock.ms = 1_001;
  expect(known.get("a")).toBeUndefined();
});
