import { expect, test } from "vitest";
import { dead, done, inAggregateOrder, type Outcome, release, retry } from "./index.ts";

const item = (aggregateKey: string, n: number) => ({ aggregateKey, n });

test.each([retry(5, "not yet"), dead("never"), release("not now", 5)])(
  "after an item with outcome $kind, the rest of its aggregate is released",
  async (outcome) => {
    const ran: string[] = [];
    const outcomes = await inAggregateOrder(
      [item("a", 1), item("b", 1), item("a", 2), item("b", 2), item("a", 3)],
      async (items) => {
        ran.push(items.map(({ aggregateKey, n }) => `${aggregateKey}${n}`).join(" "));
        return items.map(({ aggregateKey }): Outcome => (aggregateKey === "a" ? outcome : done));
      },
    );
    expect(ran).toEqual(["a1 b1", "b2"]);
    expect(outcomes.map(({ kind }) => kind)).toEqual([outcome.kind, "done", "release", "done", "release"]);
  },
);
