import { expect, test } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

test("a full map evicts its oldest entry for a new one, and an entry that is set again is the newest", () => {
  const map = new BoundedMap<string, number>(3);
  map.set("a", 1).set("b", 2).set("a", 3);
  expect([...map.keys()]).toEqual(["b", "a"]);
  map.set("c", 4).set("a", 5).set("d", 6);
  expect([...map]).toEqual([
    ["c", 4],
    ["a", 5],
    ["d", 6],
  ]);
});
