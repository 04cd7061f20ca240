/**
 * Redis goes silent, is restarted, emptied or set back to what it was some seconds ago, while players play by two
 * matchmakers. No match is lost and none is made twice; whose ticket is lost is told so, and joins again by the same call.
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

async function silence({ signal }: Redis): Promise<void> {
  const unheard = setup.playing.unheard();
  signal("SIGSTOP");
  await until("players are not answered", () => setup.playing.unheard() > unheard + 10);
  signal("SIGCONT");
}

const faults: readonly (readonly [string, (redis: Redis) => Promise<unknown>, { readonly mayForget: boolean }])[] = [
  ["goes silent for some seconds", silence, { mayForget: false }],
  ["is restarted with what it had", (redis) => redis.restart(), { mayForget: true }],
  ["is emptied", (redis) => redis.operator.flushAll(), { mayForget: true }],
  ["is restarted empty", (redis) => redis.restartEmpty(), { mayForget: true }],
  [
    "is set back to what it was some seconds ago",
    async (redis) => {
      redis.keep();
      await setup.playing.goesOn();
      await redis.restartAsKept();
    },
    { mayForget: true },
  ],
];

test.each(faults)("Redis %s: what players were told holds", { timeout: 400_000 }, async (_, inject, { mayForget }) => {
  const { playing, redis } = setup;
  if (!redis) expect.fail("there is no Redis");
  const before = playing.told.length;
  playing.start();
  await setup.playing.goesOn();
  await inject(redis);
  await setup.playing.goesOn();
  expect(await setup.faults({ mayForget })).toEqual([]);

  const lost = playing.told.slice(before).filter(({ reason }) => reason === "lost");
  const tickets = [...new Set(lost.map(({ ticketId }) => ticketId))];
  for (const ticketId of tickets.slice(0, 10)) {
    const { user } = lost.find((each) => each.ticketId === ticketId) ?? expect.fail("nobody was told");
    // Asked until it is answered: on a busy machine it may be told "later".
    await expect
      .poll(() => playing.ask("look", { user, ticketId }))
      .toMatchObject({ status: "EXPIRED", reason: "lost" });
    expect((await playing.joinAgain(ticketId)).ticketId).not.toBe(ticketId);
  }
  expect(await setup.faults({ mayForget })).toEqual([]);
});
