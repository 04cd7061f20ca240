/** The guarantees of the port, on every store that implements it. */
import { randomUUID } from "node:crypto";
import { burstSize, type LimitItem, type LimitPolicy, toPace } from "@todoke/http";
import { deleteFinished } from "@todoke/kernel/retention";
import { repetitions, testDatabase, until } from "@todoke/kernel/testing";
import { connectRedis } from "@todoke/redis";
import { operatorClient, sharedRedis } from "@todoke/redis/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { idleLimits } from "../store/limits.ts";
import type { Limiter } from "./index.ts";
import { postgresLimiter } from "./postgres.ts";
import { redisLimiter } from "./redis.ts";

/** A store with nothing in it. */
interface Stage extends AsyncDisposable {
  /** Another process. */
  open(): Limiter;
  /** Lets time go by for a key; a negative one is a clock that is set back. */
  age(key: string, ms: number): Promise<void>;
  /** How many keys it still has, once what is over was removed. */
  keysLeft(): Promise<number>;
}

const redis = sharedRedis();

async function onPostgres(): Promise<Stage> {
  const own = { name: "gateway-bff", dir: new URL("../migrations/", import.meta.url) };
  const t = await testDatabase({ schema: "gateway_bff", sets: [own] });
  return {
    open: () => postgresLimiter(t.open()),
    async age(key, ms) {
      const earlier = `update rate_limits set used_until = used_until - $2 * interval '1 millisecond' where key = $1`;
      await t.db.query(earlier, [key, ms]);
    },
    async keysLeft() {
      await deleteFinished(t.db, { ...idleLimits, keepMs: 0 });
      return Number((await t.db.query("select count(*) from rate_limits")).rows[0].count);
    },
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

async function onRedis(): Promise<Stage> {
  const { url } = redis;
  const namespace = `test:${randomUUID()}`;
  const stack = new AsyncDisposableStack();
  const onError = (error: unknown) => {
    throw error;
  };
  const client = await operatorClient(url);
  stack.defer(() => client.destroy());
  return {
    // A server, or a machine, that stands still for a moment is not what these tests are about.
    open: () => redisLimiter(stack.use(connectRedis({ url, onError, requestTimeoutMs: 60_000 })), { namespace }),
    async age(key, ms) {
      const name = `{${namespace}}:${key}`;
      const until = Number(await client.get(name)) - ms * 1_000;
      // A key that its own end has not removed yet says that its time has passed.
      await client.set(name, String(until), {
        expiration: { type: "PX", value: Math.max(1, ms < 0 ? -ms : 3_600_000) },
      });
    },
    async keysLeft() {
      return (await client.keys(`{${namespace}}:*`)).length;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const policyOf = (quota: number, windowMs: number): LimitPolicy => ({ name: "read", quota, windowMs });
const of = (key: string, policy: LimitPolicy, units = 1): LimitItem => ({ key, units, policy });

/** So long that what the tests themselves take of it makes no difference. */
const hour = 3_600_000;

describe.each([
  ["postgres", onPostgres],
  ["redis", onRedis],
] as const)("%s", (_name, stageOf) => {
  test("four processes together are granted at most the quota of a key in any window", async () => {
    await using stage = await stageOf();
    const policy = policyOf(40, 250);
    const granted: { readonly askedAt: number; readonly answeredAt: number }[] = [];
    const endsAt = performance.now() + 6 * policy.windowMs;
    // They do make progress; on a slow machine it takes more windows.
    const isOver = () => performance.now() >= endsAt && granted.length > 2 * burstSize(policy);
    async function hammer(limiter: Limiter): Promise<void> {
      while (!isOver()) {
        const askedAt = performance.now();
        if ((await limiter.take([of("one", policy)])).granted) granted.push({ askedAt, answeredAt: performance.now() });
      }
    }
    await Promise.all(
      Array.from({ length: 4 }, () => stage.open()).flatMap((one) => [1, 2, 3, 4].map(() => hammer(one))),
    );
    // Each was granted at some time between question and answer: those that lie in a window whole were granted in it.
    const inWindowFrom = (start: number) =>
      granted.filter(({ askedAt, answeredAt }) => askedAt >= start && answeredAt < start + policy.windowMs).length;
    expect(Math.max(...granted.map(({ askedAt }) => inWindowFrom(askedAt)))).toBeLessThanOrEqual(policy.quota);
  });

  test("any sequence of requests is granted as a simple model predicts", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    const policies = { a: policyOf(6, hour), b: policyOf(3, hour), c: policyOf(30, hour) };
    const keys = Object.keys(policies) as (keyof typeof policies)[];
    const request = fc.tuple(fc.subarray(keys, { minLength: 1 }), fc.integer({ min: 1, max: 3 }));
    const round = fc.record({
      ageSteps: fc.integer({ min: 0, max: 8 }),
      requests: fc.array(request, { maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 6 }), async (rounds) => {
        const run = randomUUID();
        const aheadMs = new Map(keys.map((key) => [key, 0]));
        for (const { ageSteps, requests } of rounds) {
          // Steps of an eighth of a window: what the test takes itself cannot decide anything.
          for (const key of keys) {
            if ((aheadMs.get(key) ?? 0) > 0) await stage.age(`${run}/${key}`, (ageSteps * hour) / 8);
            aheadMs.set(key, Math.max(0, (aheadMs.get(key) ?? 0) - (ageSteps * hour) / 8));
          }
          const expected = requests.map(([wanted, units]) => {
            const after = wanted.map(
              (key) => [key, (aheadMs.get(key) ?? 0) + (units * 1.5 * hour) / policies[key].quota] as const,
            );
            const fits = after.every(([key, ms]) => ms - (1.5 * hour) / policies[key].quota <= hour / 2);
            if (fits) for (const [key, ms] of after) aheadMs.set(key, ms);
            return fits;
          });
          const taken = await Promise.all(
            requests.map(([wanted, units]) =>
              limiter.take(wanted.map((key) => of(`${run}/${key}`, policies[key], units))),
            ),
          );
          expect(taken.map(({ granted }) => granted)).toEqual(expected);
        }
      }),
      { numRuns: repetitions(40) },
    );
  });

  test("a refusal by one key uses up nothing of the others", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    const small = policyOf(1, hour);
    const large = policyOf(300, hour);
    await limiter.take([of("user", small), of("address", large)]);
    const refused = await Promise.all(
      Array.from({ length: 20 }, () => limiter.take([of("address", large), of("user", small)])),
    );
    expect(refused.map(({ granted, results }) => [granted, results.map(({ item }) => item.key)])).toEqual(
      refused.map(() => [false, ["user"]]),
    );
    const { results } = await limiter.take([of("address", large)]);
    expect(results[0]?.remaining).toBe(burstSize(large) - 2);
  });

  test("concurrent requests for one key are granted in order as far as they fit", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    const policy = policyOf(30, hour);
    const taken = await Promise.all(Array.from({ length: 20 }, () => limiter.take([of("one", policy)])));
    expect(taken.map(({ granted }) => granted)).toEqual(taken.map((_, index) => index < burstSize(policy)));
  });

  test("a refused request is granted after its wait, and not before", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    const policy = policyOf(1, hour); // One, and the next after an hour.
    const take = () => limiter.take([of("one", policy)]);
    expect((await take()).granted).toBe(true);
    const refused = await take();
    expect(refused.granted).toBe(false);
    const waitMs = refused.results[0]?.waitMs ?? 0;
    expect(waitMs).toBeLessThanOrEqual(hour);
    const lastMs = 60_000; // More than the test itself takes.
    await stage.age("one", waitMs - lastMs);
    expect((await take()).granted).toBe(false);
    await stage.age("one", lastMs);
    expect((await take()).granted).toBe(true);
  });

  test("processes that use new keys concurrently neither fail nor exceed the quota", async () => {
    await using stage = await stageOf();
    const policy = policyOf(30, hour);
    const limiters = Array.from({ length: 4 }, () => stage.open());
    const names = Array.from({ length: 12 }, (_, n) => `key ${n}`);
    const asked = Array.from({ length: 40 }, (_, n) => {
      const [first = "", second = ""] = [names[n % 12], names[(n * 7 + 5) % 12]];
      return n % 2 === 0 ? [first, second] : [second, first];
    }).map((pair) => [...new Set(pair)]);
    const all = asked.flatMap((pair) => limiters.map((limiter) => ({ pair, limiter })));
    const taken = await Promise.all(all.map(({ pair, limiter }) => limiter.take(pair.map((key) => of(key, policy)))));
    const granted = all.filter((_, index) => taken[index]?.granted).flatMap(({ pair }) => pair);
    for (const name of names) {
      expect(granted.filter((key) => key === name).length).toBeLessThanOrEqual(burstSize(policy));
    }
    expect(granted.length).toBeGreaterThan(0);
  });

  test("a clock that is set back by a day locks no caller out", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    await limiter.take([of("one", policyOf(1, hour))]);
    await stage.age("one", -24 * hour);
    const { granted, results } = await limiter.take([of("one", policyOf(1, hour))]);
    expect(granted).toBe(true);
    expect(results[0]?.resetMs).toBeLessThanOrEqual(toPace(policyOf(1, hour)).eachUs / 1_000);
  });

  test("an unused key is deleted", async () => {
    await using stage = await stageOf();
    const limiter = stage.open();
    await limiter.take([of("short", policyOf(10, 20)), of("long", policyOf(10, hour))]);
    await until("only the key whose time is not over is left", async () => (await stage.keysLeft()) === 1);
    expect((await limiter.take([of("long", policyOf(10, hour))])).results[0]?.remaining).toBe(2);
  });
});
