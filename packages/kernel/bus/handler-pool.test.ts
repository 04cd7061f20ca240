import { expect, test } from "vitest";
import { until } from "../testing/index.ts";
import { done, type Outcome } from "../worker/index.ts";
import { type Delivery, HandlerPool, type HandlerPoolOptions } from "./index.ts";

const retryMs = 7;

const delivery = (eventId: string): Delivery => ({
  eventId,
  eventType: "T",
  subject: "thing.events",
  aggregateKey: "a",
  occurredAt: "",
  headers: {},
  payload: new Uint8Array(),
  redelivered: false,
});

/** A pool of messages that are event IDs, with its settled outcomes by message. */
function openPool(handle: HandlerPoolOptions<string>["handle"], more: Partial<HandlerPoolOptions<string>> = {}) {
  const settled = new Map<string, Outcome | undefined>();
  const stopping = new AbortController();
  const pool = new HandlerPool<string>({
    handle,
    batchMax: 2,
    concurrency: 2,
    toDelivery: delivery,
    settle: (batch, outcomes) => batch.forEach((message, index) => void settled.set(message, outcomes[index])),
    retryMs,
    stopping: stopping.signal,
    ...more,
  });
  const push = (...messages: string[]) => messages.forEach((message) => void pool.push(message));
  return { pool, push, settled, stop: () => stopping.abort() };
}

const ids = (deliveries: readonly Delivery[]) => deliveries.map(({ eventId }) => eventId);

test("messages that are pushed together are handled in bounded batches, and never in more than `concurrency` at once", async () => {
  const batches: string[][] = [];
  const released = Promise.withResolvers<void>();
  const { push, settled } = openPool(async (deliveries) => {
    batches.push(ids(deliveries));
    await released.promise;
    return deliveries.map(() => done);
  });
  push("a", "b", "c", "d", "e");
  await until("two handlers run", () => batches.length === 2);
  await new Promise(setImmediate);
  expect(batches).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  released.resolve();
  await until("all are settled", () => settled.size === 5);
  expect(batches[2]).toEqual(["e"]);
});

test("messages whose handler throws or returns too few outcomes are retried after `retryMs`", async () => {
  const errors: unknown[] = [];
  const onHandlerError = (error: unknown, batch: readonly string[]) => void errors.push([error, batch]);
  const failure = new Error("no");
  const failing = openPool(() => Promise.reject(failure), { onHandlerError });
  failing.push("a", "b");
  await until("both are settled", () => failing.settled.size === 2);
  expect([...failing.settled.values()]).toEqual(
    Array(2).fill({ kind: "retry", delayMs: retryMs, reason: "Error: no" }),
  );
  expect(errors).toEqual([[failure, ["a", "b"]]]);
  const forgetful = openPool(async () => [done]);
  forgetful.push("a", "b");
  await until("both are settled", () => forgetful.settled.size === 2);
  expect([...forgetful.settled.values()]).toMatchObject([done, { kind: "retry", delayMs: retryMs }]);
});

test("after a stop no batch begins, and the messages that no handler has seen can be taken", async () => {
  const seen: string[] = [];
  const released = Promise.withResolvers<void>();
  const { pool, push, settled, stop } = openPool(
    async (deliveries) => {
      seen.push(...ids(deliveries));
      await released.promise;
      return deliveries.map(() => done);
    },
    { concurrency: 1 },
  );
  push("a", "b", "c", "d", "e");
  await until("a handler runs", () => seen.length === 2);
  expect(pool.takeWaiting((message) => message === "d")).toEqual(["d"]);
  stop();
  const idle = pool.idle();
  released.resolve();
  await idle;
  expect([...settled.keys()]).toEqual(["a", "b"]);
  push("f");
  await new Promise(setImmediate);
  expect(seen).toEqual(["a", "b"]);
  expect(pool.takeWaiting()).toEqual(["c", "e", "f"]);
});
