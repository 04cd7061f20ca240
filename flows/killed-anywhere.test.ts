import { expect, test } from "vitest";
import { busKinds } from "./buses.ts";
import { createHarness, versionsByAggregate } from "./harness.ts";
import type { Point } from "./pipeline.ts";

const points: Point[] = ["claimed", "published", "settling", "effect", "handled"];

test.each(busKinds.flatMap((kind) => points.map((point) => [kind, point] as const)))(
  '%s: after kill -9 at "%s" nothing is lost and nothing takes effect twice',
  async (kind, point) => {
    await using harness = await createHarness(kind);
    await harness.append(40, 8);
    const killed = harness.start({ at: { point, nth: 2, do: "die" } });
    await killed.exited;
    expect((await harness.effects()).length).toBeLessThan(40); // It died before it was finished.

    harness.start();
    await harness.untilPublished();
    await expect.poll(async () => (await harness.effects()).length).toBeGreaterThanOrEqual(40);
    const effects = await harness.effects();
    expect(new Set(effects.map((effect) => effect.event_id)).size).toBe(40);
    expect(effects.length).toBe(40);
    if (kind === "postgres") {
      for (const versions of versionsByAggregate(effects).values()) expect(versions).toEqual([1, 2, 3, 4, 5]);
    }
  },
);
