import { sharedRedis } from "@todoke/redis/testing";
import { expect, test } from "vitest";
import { cancelUsers, duels, expectConsistent, joinInOrder, mode, readStored } from "../testing.ts";
import { createRedisHarness } from "./testing.ts";

const redis = sharedRedis();

test("a Redis restored to before a suspension matches no suspended user", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [suspended = ""] = await joinInOrder(queue, 1, { userId: "u_suspended" });
  const kept = (key: string) => `${key}:kept`;
  for (const key of t.keysOfMode()) await t.client.copy(key, kept(key));
  await cancelUsers({ queue, db: t.db }, ["u_suspended"]);
  for (const key of t.keysOfMode()) {
    if (await t.client.exists(kept(key))) await t.client.rename(kept(key), key);
    else await t.client.del(key);
  }
  expect(await queue.find(suspended)).toMatchObject({ status: "QUEUED" });

  const [other = ""] = await joinInOrder(queue, 1);
  expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
  t.record();
  await t.allRecorded();
  const { ends, matches } = await readStored(t.db);
  expect(ends).toMatchObject([{ ticket_id: suspended, status: "CANCELLED" }]);
  expect(matches).toEqual([]);
  expect(await queue.find(other)).toMatchObject({ status: "QUEUED" });
  await expectConsistent(t.db);
});

test("an end is reported once, whether the transaction or the recorder records it", async () => {
  await using t = await createRedisHarness(redis, { recorders: 2 });
  const queue = t.open();
  const users = Array.from({ length: 30 }, (_, n) => `u_${n}`);
  for (const userId of users) await joinInOrder(queue, 1, { userId });
  await Promise.all(users.map((userId) => cancelUsers({ queue, db: t.db }, [userId])));
  await t.allRecorded();
  expect((await readStored(t.db)).ended("CANCELLED")).toHaveLength(30);
  expect(t.recorded.filter(({ result }) => result.kind === "recorded")).toHaveLength(30);
});
