import { startEngine } from "@todoke/engines";
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { RedisUnavailable } from "@todoke/redis";
import { operatorClient, sharedRedis } from "@todoke/redis/testing";
import { expect, test } from "vitest";
import type { TicketQueue } from "../index.ts";
import {
  cancelUsers,
  duels,
  expectConsistent,
  joinInOrder,
  mode,
  readStored,
  terms,
  ticketRequest,
} from "../testing.ts";
import { createRedisHarness } from "./testing.ts";

const redis = sharedRedis();

type RedisStage = Awaited<ReturnType<typeof createRedisHarness>>;

/** The exact content of all keys of a mode. */
async function contentOf({ client, keysOfMode }: RedisStage): Promise<unknown[]> {
  return Promise.all(keysOfMode().map((key) => client.sendCommand(["DUMP", key])));
}

/** Calls every operation of a queue once. */
async function useAll(queue: TicketQueue, db: Db): Promise<void> {
  const [a = "", b = "", c = "", d = "", e = ""] = await joinInOrder(queue, 5, { heartbeatMs: 60_000 });
  await queue.join(ticketRequest({ ticketMs: 1 }));
  expect(await queue.find(a)).toBeDefined();
  expect(await queue.heartbeat(a, 60_000)).toBeDefined();
  expect(await queue.acquireFormingLease(mode, 1_000)).toBe(true);
  expect((await queue.snapshot(mode, 10)).tickets.length).toBeGreaterThanOrEqual(5);
  const seats = [a, b].map((ticketId, n) => ({ ticketId, team: n + 1 }));
  expect(await queue.commitProposals(mode, [{ seats }], terms)).toEqual({ made: 1 });
  expect(await queue.cancel(e)).toBe("CANCELLED");
  await queue.join(ticketRequest({ userId: "u_cancelled" }));
  await cancelUsers({ queue, db }, ["u_cancelled"]);
  await until("the ticket is expired", async () => (await queue.sweep(mode)).waiting === 2);
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
  expect(await queue.cancel(c)).toBe("MATCHED");
  expect(await queue.cancel(d)).toBe("MATCHED");
}

test("all keys of a mode are in one slot of a Redis cluster", async () => {
  await using engine = await startEngine("redis", { settings: { "cluster-enabled": "yes" } });
  await using t = await createRedisHarness(engine);
  await t.client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
  const queue = t.open();
  await until("the cluster is up", () =>
    queue.sweep(mode).then(
      () => true,
      () => false,
    ),
  );
  await useAll(queue, t.db);
  await t.allRecorded();
  await expectConsistent(t.db);
  const slots = t.keysOfMode().map((key) => t.client.sendCommand(["CLUSTER", "KEYSLOT", key]));
  expect(new Set(await Promise.all(slots)).size).toBe(1);
});

test("a Redis user limited to the queue's keys and commands can run everything", async () => {
  await using engine = await startEngine("redis");
  await using t = await createRedisHarness(engine, { recorders: 0 });
  const commands =
    "evalsha eval type time exists get set hget hset hdel hmget zadd zrem zrange zrangebyscore zscore zcard " +
    "xadd xlen xrange xack xdel xinfo|groups xgroup|create xautoclaim xreadgroup auth";
  const rights = commands.split(" ").map((command) => `+${command}`);
  await t.client.sendCommand([
    "ACL",
    "SETUSER",
    "queue",
    "on",
    ">secret",
    "resetkeys",
    `~${t.keyPrefix}:*`,
    "-@all",
    ...rights,
  ]);
  const url = new URL(engine.url);
  [url.username, url.password] = ["queue", "secret"];
  t.record(url.href);
  await useAll(t.open(url.href), t.db);
  await t.allRecorded();
  await expectConsistent(t.db);
});

test("a full Redis rejects writes without partial effects; ends are still recorded and acked", async () => {
  await using engine = await startEngine("redis", { settings: { "maxmemory-policy": "noeviction" } });
  await using t = await createRedisHarness(engine, { recorders: 0 });
  const queue = t.open();
  const [a = "", b = "", c = ""] = await joinInOrder(queue, 7);
  const seats = [a, b].map((ticketId, n) => ({ ticketId, team: n + 1 }));
  await queue.commitProposals(mode, [{ seats }], terms);
  await queue.heartbeat(c, 60_000);
  const before = await contentOf(t);
  await t.client.configSet("maxmemory", "1");
  const attempts = [
    () => queue.join(ticketRequest()),
    () => queue.matchFifo(mode, duels),
    () => queue.commitProposals(mode, [{ seats: [{ ticketId: c, team: 1 }] }], terms),
    () => queue.cancel(c),
    () => queue.heartbeat(c, 60_000),
  ];
  for (const attempt of attempts) await expect(attempt()).rejects.toBeInstanceOf(RedisUnavailable);
  expect(await contentOf(t)).toEqual(before);
  t.record();
  // The recorder creates its consumer group once there is memory.
  await t.client.configSet("maxmemory", "0");
  await until("the match is recorded", async () => (await readStored(t.db)).matches.length === 1);
  await t.allRecorded();
  await queue.matchFifo(mode, { ...duels, matchesMax: 1 });
  await t.client.configSet("maxmemory", "1");
  await t.allRecorded();
  await t.client.configSet("maxmemory", "0");
  expect((await readStored(t.db)).matches).toHaveLength(2);
  expect((await queue.sweep(mode)).waiting).toBe(3);
  await expectConsistent(t.db);
});

test("a Redis that is busy with an endless script is unavailable, and nothing is half done", async () => {
  await using engine = await startEngine("redis", { settings: { "busy-reply-threshold": "50" } });
  await using t = await createRedisHarness(engine);
  const queue = t.open();
  const ids = await joinInOrder(queue, 4);
  const busy = await operatorClient(engine.url);
  using _busy = { [Symbol.dispose]: () => busy.destroy() };
  const endless = busy.eval("while true do end").catch(() => "killed");
  await until("Redis is busy", () =>
    t.client.ping().then(
      () => false,
      (error) => String(error).includes("BUSY"),
    ),
  );
  await expect(queue.matchFifo(mode, duels)).rejects.toBeInstanceOf(RedisUnavailable);
  await expect(queue.join(ticketRequest())).rejects.toBeInstanceOf(RedisUnavailable);
  await t.client.sendCommand(["SCRIPT", "KILL"]);
  expect(await endless).toBe("killed");
  await until("all are matched", async () => {
    await queue.matchFifo(mode, duels).catch(() => {});
    return (await readStored(t.db)).ended("MATCHED").length === ids.length;
  });
  await t.allRecorded();
  await expectConsistent(t.db);
});

test("a key of the wrong type stops every script before its first write", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [a = "", b = ""] = await joinInOrder(queue, 4);
  const seats = [a, b].map((ticketId, n) => ({ ticketId, team: n + 1 }));
  for (const key of t.keysOfMode()) {
    const kept = await t.client.sendCommand(["COPY", key, `${key}-kept`]);
    await t.client.del(key);
    await (key.endsWith(":forming") ? t.client.hSet(key, "field", "?") : t.client.set(key, "text"));
    const before = await contentOf(t);
    const attempts = [
      () => queue.join(ticketRequest()),
      () => queue.matchFifo(mode, duels),
      () => queue.commitProposals(mode, [{ seats }], terms),
      () => queue.cancel(a),
      () => queue.sweep(mode),
    ];
    for (const attempt of attempts) await expect(attempt(), key).rejects.toThrow("WRONGTYPE");
    expect(await contentOf(t), key).toEqual(before);
    await t.client.del(key);
    if (Number(kept) === 1) await t.client.rename(`${key}-kept`, key);
  }
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 2 });
});

test("an end that cannot be parsed or stored is quarantined and blocks no other end", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  await t.client.xAdd(t.key("ends"), "*", { kind: "match", id: "duel.what", ticket: "{" });
  await t.client.xAdd(t.key("ends"), "*", { nothing: "of use" });
  // The API rejects NUL; data from another source must not stop the rest.
  const poison = await queue.join(ticketRequest({ attributes: { name: "\0" } }));
  const ids = await joinInOrder(queue, 3);
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 2 });
  t.record();
  await t.allRecorded();
  const { damaged, ended } = await readStored(t.db);
  expect(damaged).toHaveLength(3);
  expect(ended("MATCHED").sort()).toEqual(ids.slice(1).sort());
  expect(await queue.find(poison.ticketId)).toBeUndefined();
  await expectConsistent(t.db);
});

test("idempotency keys expire after the configured time", async () => {
  const idempotencyMs = 7_200_000;
  await using t = await createRedisHarness(redis, { idempotencyMs });
  const before = Date.now();
  await t.open().join(ticketRequest({ userId: "u_1" }));
  const [key] = await t.client.zRangeWithScores(t.key("keys_until"), 0, -1);
  expect((key?.score ?? 0) - before).toBeGreaterThan(idempotencyMs - 60_000);
  expect((key?.score ?? 0) - before).toBeLessThan(idempotencyMs + 60_000);
});

test("idempotency keys are deleted after a day, not before", async () => {
  await using t = await createRedisHarness(redis);
  const queue = t.open();
  const [one, other] = [ticketRequest({ userId: "u_1" }), ticketRequest({ userId: "u_2" })];
  const first = await queue.join(one);
  const [hash = ""] = await t.client.hKeys(t.key("keys"));
  await queue.join(other);
  const kept = JSON.parse((await t.client.hGet(t.key("keys"), hash)) ?? "");
  await t.client.hSet(t.key("keys"), hash, JSON.stringify({ ...kept, keep: 1 }));
  await t.client.zAdd(t.key("keys_until"), { value: hash, score: 1 });
  // The key is expired but not swept yet: this is a new request.
  expect(await queue.join(one)).toMatchObject({ kind: "open", ticketId: first.ticketId, replayed: false });
  await t.client.zAdd(t.key("keys_until"), { value: hash, score: 1 });
  await queue.sweep(mode);
  expect(await t.client.hLen(t.key("keys"))).toBe(1);
  expect(await t.client.zCard(t.key("keys_until"))).toBe(1);
  expect((await queue.join(other)).replayed).toBe(true);
});

test("a clock set back by less than a second does not change the join order", async () => {
  await using t = await createRedisHarness(redis);
  const queue = t.open();
  const [early = ""] = await joinInOrder(queue, 1);
  const joined = await t.client.zScore(t.key("queue"), early);
  await t.client.zAdd(t.key("queue"), { value: early, score: Number(joined) + 900_000 });
  const later = await joinInOrder(queue, 3);
  expect(await t.client.zRange(t.key("queue"), 0, -1)).toEqual([early, ...later]);
});
