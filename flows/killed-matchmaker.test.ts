/**
 * Matchmaking processes are killed, or stopped and resumed, at every failpoint while players join, poll, send heartbeats and
 * cancel. Responses stay true, no ticket is lost or doubled, and each player is notified once.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type MatchmakingSetup, openMatchmaking, type Step, type Store } from "./matchmaking.ts";

/** The failpoints, some processes at a time. */
const rounds: Readonly<Record<Store, readonly (readonly Step[])[]>> = {
  postgres: [
    [
      { name: "statement.sent", hit: 40 }, // After the statements of the start: a join.
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

/** Failpoints at which a process holds rows and a lock in PostgreSQL, or claimed ends in Redis. */
const stoppedAt: Readonly<Record<Store, readonly Step[]>> = {
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
    "killed at %s: every response stays true",
    { timeout: 400_000 },
    async (_, steps) => {
      setup.playerLoad.start();
      await setup.killAt(...steps);
      expect(await setup.violations({ redisLostData: false })).toEqual([]);
    },
  );

  test.each(stoppedAt[store])("stopped at $name: every response stays true", { timeout: 400_000 }, async (step) => {
    setup.playerLoad.start();
    await using stoppedProcess = await setup.stopAt(step);
    stoppedProcess.signal("SIGCONT");
    await setup.playerLoad.waitForProgress();
    expect(await setup.violations({ redisLostData: false })).toEqual([]);
  });
});
