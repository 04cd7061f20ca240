import { expect, test } from "vitest";
import { until } from "../testing/index.ts";
import { type LoopOptions, type Pass, startLoop } from "./index.ts";

const never = 600_000;

/** Counts passes; each may set the next wait or fail. */
function counting(pass: Pass = async () => {}) {
  const counted = {
    passes: 0,
    run: (stopping: AbortSignal, nextIn: (ms: number) => void) => {
      counted.passes++;
      return pass(stopping, nextIn);
    },
  };
  return counted;
}

test("a loop runs a pass at once and again after its interval", async () => {
  const counted = counting();
  await using _ = startLoop(counted.run, { intervalMs: 1 });
  expect(counted.passes).toBe(1);
  await until("it has polled", () => counted.passes > 3);
});

test("a wake-up starts the next pass, also if it arrives during a pass", async () => {
  const first = Promise.withResolvers<void>();
  const counted = counting(() => first.promise);
  await using loop = startLoop(counted.run, { intervalMs: never });
  loop.wake();
  first.resolve();
  await until("the second pass has run", () => counted.passes === 2);
});

test("a signal of its topic wakes a loop until it is stopped", async () => {
  const subscribed = new Map<string, () => void>();
  const wakeups = {
    on(topic: string, wake: () => void) {
      subscribed.set(topic, wake);
      return () => void subscribed.delete(topic);
    },
  };
  const counted = counting();
  const loop = startLoop(counted.run, { intervalMs: never, wakeups, topic: "jobs" });
  subscribed.get("jobs")?.();
  await until("it is woken", () => counted.passes === 2);
  await loop[Symbol.asyncDispose]();
  expect(subscribed.size).toBe(0);
});

test("a pass sets the wait before the next one", async () => {
  const counted = counting(async (_, nextIn) => nextIn(counted.passes < 5 ? 0 : never));
  await using _ = startLoop(counted.run, { intervalMs: never });
  await until("five passes have run", () => counted.passes === 5);
});

test("a pass that asks for none is followed by the next one only at a wake-up", async () => {
  const counted = counting(async (_, nextIn) => nextIn(Number.POSITIVE_INFINITY));
  await using loop = startLoop(counted.run, { intervalMs: 1 });
  const other = counting();
  await using _ = startLoop(other.run, { intervalMs: 5 });
  await until("another loop has run several times", () => other.passes > 4);
  expect(counted.passes).toBe(1);
  loop.wake();
  await until("the second pass has run", () => counted.passes === 2);
});

test("a wake-up does not shorten the pause after a pass, and is not lost in it", async () => {
  const counted = counting();
  const pauses: number[] = [];
  const pauseMs = (tookMs: number) => {
    pauses.push(tookMs);
    return pauses.length === 1 ? 20 : never;
  };
  await using loop = startLoop(counted.run, { intervalMs: never, pauseMs });
  await until("it pauses", () => pauses.length === 1);
  loop.wake();
  await new Promise(setImmediate);
  expect(counted.passes).toBe(1);
  await until("the wake-up takes effect after the pause", () => pauses.length === 2);
  loop.wake();
  await new Promise(setImmediate);
  expect(counted.passes).toBe(2);
  for (const tookMs of pauses) expect(tookMs).toBeGreaterThanOrEqual(0);
});

test("a failed pass is reported and repeated after its backoff, which a wake-up does not cut short", async () => {
  const errors: unknown[] = [];
  const counted = counting(async () => {
    throw new Error("no");
  });
  const options: LoopOptions = { intervalMs: never, task: "counting", onError: (error) => errors.push(error) };
  await using slow = startLoop(counted.run, { ...options, backoff: { baseMs: never, capMs: never } });
  await until("it has failed", () => errors.length === 1);
  slow.wake();
  await new Promise(setImmediate);
  expect(counted.passes).toBe(1);
  expect(errors).toMatchObject([{ message: "counting failed", cause: { message: "no" } }]);
  await using _ = startLoop(counted.run, { ...options, backoff: { baseMs: 1, capMs: 1 } });
  await until("it is repeated", () => counted.passes > 3);
});

test("a stop aborts the signal and waits for the running pass", async () => {
  const finish = Promise.withResolvers<void>();
  let aborted = false;
  const loop = startLoop(
    async (stopping) => {
      stopping.addEventListener("abort", () => {
        aborted = true;
      });
      await finish.promise;
    },
    { intervalMs: never },
  );
  let isStopped = false;
  const stopped = Promise.resolve(loop[Symbol.asyncDispose]()).then(() => {
    isStopped = true;
  });
  expect(aborted).toBe(true);
  await new Promise(setImmediate);
  expect(isStopped).toBe(false);
  finish.resolve();
  await stopped;
});
