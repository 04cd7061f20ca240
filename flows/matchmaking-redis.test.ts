/**
 * Redis stops, restarts, loses its data or goes back some seconds while players use two matchmaking processes. No match is lost
 * or doubled; a player whose ticket is lost learns it and can repeat the join.
 */
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type MatchmakingSetup, openMatchmaking } from "./matchmaking.ts";

let setup: MatchmakingSetup;
beforeAll(async () => {
  setup = await openMatchmaking("redis");
  await setup.start();
}, 400_000);
afterAll(() => setup?.[Symbol.asyncDispose]());

type Redis = NonNullable<MatchmakingSetup["redis"]>;

async function stopForSeconds({ signal }: Redis): Promise<void> {
  const before = setup.playerLoad.unansweredCalls();
  signal("SIGSTOP");
  await until("calls fail", () => setup.playerLoad.unansweredCalls() > before + 10);
  signal("SIGCONT");
}

const redisFaults: readonly (readonly [
  string,
  (redis: Redis) => Promise<unknown>,
  { readonly redisLostData: boolean },
])[] = [
  ["stops for some seconds", stopForSeconds, { redisLostData: false }],
  ["restarts with its data", (redis) => redis.restart(), { redisLostData: true }],
  ["is flushed", (redis) => redis.operator.flushAll(), { redisLostData: true }],
  ["restarts empty", (redis) => redis.restartEmpty(), { redisLostData: true }],
  [
    "goes back some seconds",
    async (redis) => {
      redis.takeSnapshot();
      await setup.playerLoad.waitForProgress();
      await redis.restartFromSnapshot();
    },
    { redisLostData: true },
  ],
];

test.each(redisFaults)(
  "Redis %s: every response stays true",
  { timeout: 400_000 },
  async (_, inject, { redisLostData }) => {
    const { playerLoad, redis } = setup;
    if (!redis) expect.fail("there is no Redis");
    const before = playerLoad.responses.length;
    playerLoad.start();
    await setup.playerLoad.waitForProgress();
    await inject(redis);
    await setup.playerLoad.waitForProgress();
    expect(await setup.violations({ redisLostData })).toEqual([]);

    const lost = playerLoad.responses.slice(before).filter(({ reason }) => reason === "lost");
    const tickets = [...new Set(lost.map(({ ticketId }) => ticketId))];
    for (const ticketId of tickets.slice(0, 10)) {
      const { user } = lost.find((each) => each.ticketId === ticketId) ?? expect.fail("no response");
      // Polled, because a busy machine may answer 503.
      await expect
        .poll(() => playerLoad.call("get", { user, ticketId }))
        .toMatchObject({ status: "EXPIRED", reason: "lost" });
      expect((await playerLoad.repeatJoin(ticketId)).ticketId).not.toBe(ticketId);
    }
    expect(await setup.violations({ redisLostData })).toEqual([]);
  },
);
