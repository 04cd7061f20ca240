import { expect, test } from "vitest";
import { busKinds } from "./buses.ts";
import { createHarness, versionsByAggregate } from "./harness.ts";
import type { Point } from "./pipeline.ts";

const points: Point[] = ["claimed", "published", "settling", "effect", "handled"];

test.each(busKinds.flatMap((kind) => points.map((point) => [kind, point] as const)))(
  '%s: after kill -9 at "%s" nothing is lost and nothing takes effect twice',
  async (kind, point) => {
    await using stage = await createHarness(kind);
    await stage.append(40, 8);
    const doomed = stage.start({ at: { point, nth: 2, do: "die" } });
    await doomed.exited;
    expect((await stage.effects()).length).toBeLessThan(40); // It died in the middle of it.

    stage.start();
    await stage.untilPublished();
    await expect.poll(async () => (await stage.effects()).length).toBeGreaterThanOrEqual(40);
    const effects = await stage.effects();
    expect(new Set(effects.map((effect) => effect.event_id)).size).toBe(40);
    expect(effects.length).toBe(40);
    if (kind === "postgres") {
      for (const versions of versionsByAggregate(effects).values()) expect(versions).toEqual([1, 2, 3, 4, 5]);
    }
  },
);
