import { inspect } from "node:util";
import { startEngine } from "@todoke/engines";
import { isUnavailable } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { RedisUnavailable } from "@todoke/redis";
import { sharedRedis } from "@todoke/redis/testing";
import { expect, test } from "vitest";
import type { SessionStore } from "./index.ts";
import { redisKeys } from "./redis-scripts.ts";
import { newSession, redisHarness, userSnapshot } from "./testing.ts";

const redis = sharedRedis();

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error) => error,
  );
}

const answers = (store: SessionStore) => () =>
  store.find("tds_".padEnd(47, "x")).then(
    () => true,
    () => false,
  );

test("an emptied Redis has logged everybody out, and new logins work", async () => {
  await using engine = await startEngine("redis");
  await using t = await redisHarness(engine);
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { token } = await store.create(newSession());
  await store.putOneTime("login", "state-1", {}, 60_000);
  await t.client.flushAll();
  await t.client.scriptFlush();
  expect(await store.find(token)).toBeUndefined();
  expect(await store.takeOneTime("login", "state-1")).toBeUndefined();
  await expect(store.create(newSession())).rejects.toThrow("unknown or deleted");
  await store.saveUser(userSnapshot());
  expect(await store.find(token)).toBeUndefined();
  const again = await store.create(newSession());
  expect(await store.find(again.token)).toMatchObject({ status: "ACTIVE" });
});

test("a lost key lets no ended or suspended session in", async () => {
  await using t = await redisHarness(redis);
  const store = t.open();
  for (const [n, key] of redisKeys(t.namespace).entries()) {
    const userId = `u_${n}`;
    await store.saveUser(userSnapshot({ userId }));
    const { token } = await store.create(newSession({ userId }));
    await t.client.del(key);
    await store.endAll(userId);
    expect(await store.find(token), `without ${key}`).toBeUndefined();
    await store.saveUser(userSnapshot({ userId, version: 2, status: "SUSPENDED" }));
    const later = await store.create(newSession({ userId }));
    await t.client.del(key);
    expect((await store.find(later.token))?.status, `without ${key}`).not.toBe("ACTIVE");
  }
});

test("a session that is live by a longer idle time is not deleted", async () => {
  await using t = await redisHarness(redis);
  const [short, long] = [t.open({ idleMs: 1_000_000 }), t.open({ idleMs: 5_000_000 })];
  await short.saveUser(userSnapshot());
  const { token } = await short.create(newSession());
  await t.pass(2_000_000);
  expect(await short.find(token)).toBeUndefined();
  expect(await long.deleteExpired()).toBe(0);
  expect(await long.find(token)).toMatchObject({ status: "ACTIVE" });
});

test("a session of a deleted user is not found", async () => {
  await using t = await redisHarness(redis);
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { token } = await store.create(newSession());
  await t.client.hSet(`{${t.namespace}}:known`, "u_1", JSON.stringify({ version: 2, status: "DELETED", roles: [] }));
  expect(await store.find(token)).toBeUndefined();
});

test("while Redis is down find fails, and after a restart all sessions are back", async () => {
  // By default Redis may delay a write of its log while a busy disk syncs, and a kill then loses it.
  await using engine = await startEngine("redis", { settings: { appendfsync: "always" } });
  await using t = await redisHarness(engine);
  const store = t.open();
  await store.saveUser(userSnapshot());
  await store.saveUser(userSnapshot({ userId: "u_2", status: "SUSPENDED" }));
  const [{ token }, suspended] = [await store.create(newSession()), await store.create(newSession({ userId: "u_2" }))];
  await engine.kill();
  const failures = [
    await failureOf(store.find(token)),
    await failureOf(store.saveUser(userSnapshot({ version: 2 }))),
    await failureOf(store.create(newSession())),
    await failureOf(store.takeOneTime("login", "state-1")),
  ];
  for (const failure of failures) {
    expect(failure).toBeInstanceOf(RedisUnavailable);
    expect(isUnavailable(failure)).toBe(true);
  }
  const openedWhileDown = t.open();
  expect(await failureOf(openedWhileDown.find(token))).toBeInstanceOf(RedisUnavailable);
  await engine.start();
  for (const each of [store, openedWhileDown]) {
    await until("it is reached again", answers(each));
    expect(await each.find(token)).toMatchObject({ status: "ACTIVE" });
    expect(await each.find(suspended.token)).toMatchObject({ status: "SUSPENDED" });
  }
  const errorText = inspect([...failures, ...t.errors], { depth: null, showHidden: true });
  expect(errorText).toContain("Redis");
  for (const canary of [token, new URL(engine.url).password]) expect(errorText).not.toContain(canary);
});

test("all session keys are in one slot of a cluster", async () => {
  await using engine = await startEngine("redis", { settings: { "cluster-enabled": "yes" } });
  await using t = await redisHarness(engine);
  await t.client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
  const store = t.open();
  await until("the cluster is up", answers(store));
  await store.saveUser(userSnapshot());
  const { token, sessionId } = await store.create(newSession());
  expect(await store.find(token)).toBeDefined();
  expect(await store.getTokens(sessionId)).toBeDefined();
  await store.putOneTime("login", "state-1", "here", 60_000);
  expect(await store.takeOneTime("login", "state-1")).toBe("here");
  expect(await store.endAll("u_1")).toBe(1);
  const slots = redisKeys(t.namespace).map((key) => t.client.sendCommand(["CLUSTER", "KEYSLOT", key]));
  expect(new Set(await Promise.all(slots)).size).toBe(1);
});
