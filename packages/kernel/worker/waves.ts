/**
 * Works a batch so that items of one aggregate go one after the other, while different aggregates go together: first
 * the first of each, then the second of each. Behind one that was not done, the rest of its aggregate is given back.
 */
import { type Outcome, release } from "./outcome.ts";

interface OfAggregate {
  readonly aggregateKey: string;
}

/** Answers each item in its place. `run` never gets two items of one aggregate at once. */
export async function inWaves<Item extends OfAggregate>(
  items: readonly Item[],
  run: (wave: readonly Item[]) => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  const outcomes = new Map<Item, Outcome>();
  const stuck = new Set<string>();
  for (const wave of waves(items)) {
    const going = wave.filter((item) => !stuck.has(item.aggregateKey));
    const answers = going.length > 0 ? await run(going) : [];
    going.forEach((item, place) => {
      const outcome = answers[place];
      if (!outcome) return;
      outcomes.set(item, outcome);
      if (outcome.kind !== "done") stuck.add(item.aggregateKey);
    });
  }
  return items.map((item) => outcomes.get(item) ?? behindAnother);
}

const behindAnother = release("one of the same aggregate before it is not done");

function waves<Item extends OfAggregate>(items: readonly Item[]): Item[][] {
  const seen = new Map<string, number>();
  const result: Item[][] = [];
  for (const item of items) {
    const nth = seen.get(item.aggregateKey) ?? 0;
    seen.set(item.aggregateKey, nth + 1);
    const wave = result[nth];
    if (wave) wave.push(item);
    else result.push([item]);
  }
  return result;
}
