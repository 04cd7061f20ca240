/**
 * A matchmaker is killed with -9 at every step that matters, or falls asleep there and wakes when others have done what it
 * was at, while players join, look, are heard of and change their minds. Whatever players were told holds, no ticket is lost
 * or doubled, and each match is told once to each.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type MatchmakingSetup, openMatchmaking, type Step, type Store } from "./matchmaking.ts";

/** Every step at which a crash matters, some processes at a time. */
const rounds: Readonly<Record<Store, readonly (readonly Step[])[]>> = {
  postgres: [
    [
      { name: "statement.sent", hit: 40 }, // Past what a start sends: a join.
      { name: "join.applied", hit: 5 },
      { name: "match.writing", hit: 2 },
    ],
    [
      { name: "transaction.commit-sent", hit: 4 },
      { name: "match.made", hit: 2 },
      { name: "cancel.writing", hit: 2 },
    ],
    [
      { name: "cancel.recorded", hit: 2 },
      { name: "sweep.writing", hit: 1 },
      { name: "sweep.ended", hit: 1 },
    ],
  ],
  redis: [
    [
      { name: "join.applied", hit: 5 },
      { name: "match.made", hit: 2 },
      { name: "cancel.writing", hit: 2 },
      { name: "recorder.claimed", hit: 2 },
    ],
    [
      { name: "cancel.recorded", hit: 2 },
      { name: "sweep.ended", hit: 1 },
      { name: "recorder.writing", hit: 2 },
    ],
    [
      { name: "transaction.commit-sent", hit: 3 },
      { name: "recorder.recorded", hit: 2 },
      { name: "recorder.acked", hit: 2 },
    ],
  ],
};

const titled = (all: readonly (readonly Step[])[]) =>
  all.map((steps) => [steps.map(({ name }) => name).join(", "), steps] as const);

/** Where it holds what others want: rows and a lock in PostgreSQL, or ends that are in nobody else's hands. */
const asleepAt: Readonly<Record<Store, readonly Step[]>> = {
  postgres: [{ name: "match.writing", hit: 2 }],
  redis: [
    { name: "recorder.claimed", hit: 2 },
    { name: "recorder.recorded", hit: 2 },
  ],
};

describe.each(["postgres", "redis"] as const)("tickets in %s", (store) => {
  let setup: MatchmakingSetup;
  beforeAll(async () => {
    setup = await openMatchmaking(store);
  }, 400_000);
  afterAll(() => setup?.[Symbol.asyncDispose]());

  test.each(titled(rounds[store]))(
    "killed at %s: what players were told holds",
    { timeout: 400_000 },
    async (_, steps) => {
      setup.playing.start();
      await setup.dieAt(...steps);
      expect(await setup.faults({ mayForget: false })).toEqual([]);
    },
  );

  test.each(asleepAt[store])("asleep at $name: what players were told holds", { timeout: 400_000 }, async (step) => {
    setup.playing.start();
    await using sleeper = await setup.sleepAt(step);
    sleeper.signal("SIGCONT");
    await setup.playing.goesOn();
    expect(await setup.faults({ mayForget: false })).toEqual([]);
  });
});
