import { expect, test } from "vitest";
import { type Act, mergeActs, type Positions, type SourcePage } from "./merge-acts.ts";

/** Sources of acts by the minute of each, in the order of the source. */
function pagesOf(
  sources: Readonly<Record<string, readonly number[]>>,
  positions: Positions,
  limit: number,
): SourcePage[] {
  return Object.entries(sources).map(([source, minutes]) => {
    const all = minutes.map((minute, index): Act => ({ service: source, act_id: String(index), at: `10:${minute}` }));
    const rest = all.slice(positions[source] === undefined ? 0 : Number(positions[source]) + 1);
    const cursorOf = ({ act_id }: Act) => act_id;
    return { source, acts: rest.slice(0, limit), cursorOf, hasMore: rest.length > limit };
  });
}

test.each([1, 2, 3, 10])("pages of %i have each act once, and those of a source in its order", (limit) => {
  // The second source has acts whose times are not in its order.
  const sources = { a: [50, 40, 30, 20], b: [45, 48, 11, 35], c: [] };
  const shown: string[] = [];
  for (let positions: Positions | undefined = {}; positions; ) {
    const merged = mergeActs(pagesOf(sources, positions, limit), positions, limit);
    expect(merged.acts.length).toBeLessThanOrEqual(limit);
    shown.push(...merged.acts.map(({ service, act_id }) => service + act_id));
    positions = merged.positions;
  }
  expect(shown).toEqual(["a0", "b0", "b1", "a1", "a2", "a3", "b2", "b3"]);
});

test("the acts of a source that did not answer come when it answers again", () => {
  const sources = { a: [50, 40], b: [45] };
  const first = mergeActs(pagesOf({ a: sources.a }, {}, 1), {}, 1);
  const second = mergeActs(pagesOf(sources, first.positions ?? {}, 5), first.positions ?? {}, 5);
  expect(second.acts.map(({ service, act_id }) => service + act_id)).toEqual(["b0", "a1"]);
  expect(second.positions).toBeUndefined();
});
