/**
 * Runs a batch in the order of its aggregates: the first item of every aggregate together, then the second of every
 * aggregate. After an item that is not done, the rest of its aggregate is released.
 */
import { type Outcome, release } from "./outcome.ts";

interface AggregateItem {
  readonly aggregateKey: string;
}

/** Returns the outcomes in input order. `run` never gets two items of one aggregate. */
export async function inAggregateOrder<Item extends AggregateItem>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  const outcomes = new Map<Item, Outcome>();
  const blocked = new Set<string>();
  for (const step of groupByPosition(items)) {
    const runnable = step.filter((item) => !blocked.has(item.aggregateKey));
    const results = runnable.length > 0 ? await run(runnable) : [];
    runnable.forEach((item, index) => {
      const outcome = results[index];
      if (!outcome) return;
      outcomes.set(item, outcome);
      if (outcome.kind !== "done") blocked.add(item.aggregateKey);
    });
  }
  return items.map((item) => outcomes.get(item) ?? blockedByEarlier);
}

const blockedByEarlier = release("an earlier event of its aggregate is not done");

/** The n-th group has the n-th item of every aggregate. */
function groupByPosition<Item extends AggregateItem>(items: readonly Item[]): Item[][] {
  const counts = new Map<string, number>();
  const groups: Item[][] = [];
  for (const item of items) {
    const position = counts.get(item.aggregateKey) ?? 0;
    counts.set(item.aggregateKey, position + 1);
    const group = groups[position];
    if (group) group.push(item);
    else groups.push([item]);
  }
  return groups;
}
