/** What an answer does, and what becomes of a delivery that is never answered. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { dead, done, release, retry } from "../../worker/outcome.ts";
import type { Delivery } from "../index.ts";
import type { BusUnderTest } from "./index.ts";
import { listen, setStage, store, thing, things } from "./stage.ts";

/**
 * Short, so that a test can outlast it; long enough that a process which stands still for seconds is not taken for dead:
 * who works on an event says so every third of it.
 */
const ackWaitMs = 6_000;
/** More than the ack wait. */
const longerMs = 1.25 * ackWaitMs;

export function answersConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: an event whose answer was lost in a crash comes back, marked redelivered`, async () => {
    await using stage = setStage(bus, { ackWaitMs });
    const doomed = await stage.open();
    const event = thing();
    const first = await listen(doomed, {
      answer: async () => {
        await bus.crash(doomed);
        return done;
      },
    });
    await store(await stage.open(), [event]);
    await until("the first process has handled it", () => first.timesHeard(event) === 1);
    const second = await listen(await stage.open());
    await until("it comes back", () => second.timesHeard(event) === 1);
    assert.deepEqual([first, second].map(redelivered), [[false], [true]]);
  });

  test(`${name}: a retry comes back after its delay and not before, marked redelivered`, async () => {
    await using stage = setStage(bus);
    const delayMs = 400;
    const times: number[] = [];
    const process = await stage.open();
    const ear = await listen(process, {
      answer: () => {
        times.push(performance.now());
        return times.length === 1 ? retry(delayMs, "try me again") : done;
      },
    });
    await store(process, [thing()]);
    await until("it comes back", () => times.length === 2);
    const [sent = 0, back = 0] = times;
    assert.ok(back - sent >= delayMs, `it came back after ${back - sent} ms`);
    assert.deepEqual(redelivered(ear), [false, true]);
  });

  test(`${name}: a released event comes back`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    let times = 0;
    // It was not tried, so a bus may call it new again: what counts is how often it came.
    await using _ = await listen(process, { answer: () => (++times === 1 ? release("not now") : done) });
    await store(process, [thing()]);
    await until("it comes back", () => times === 2);
  });

  test(`${name}: done and dead events never come back`, async () => {
    await using stage = setStage(bus, { ackWaitMs });
    const process = await stage.open();
    const [finished, hopeless, clock] = [thing(), thing(), thing()];
    const ear = await listen(process, {
      answer: (delivery) => {
        if (delivery.eventId === finished.eventId) return done;
        if (delivery.eventId === hopeless.eventId) return dead("cannot be read");
        return delivery.redelivered ? done : retry(longerMs, "a clock that the broker keeps");
      },
    });
    await store(process, [finished, hopeless, clock]);
    await until("more than the ack wait has passed", () => ear.timesHeard(clock) === 2);
    assert.equal(ear.timesHeard(finished), 1);
    assert.equal(ear.timesHeard(hopeless), 1);
  });

  test(`${name}: a handler that throws gets its whole batch again`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const process = await stage.open();
    const events = things(3);
    await store(process, events);
    const heard: Delivery[] = [];
    await process.subscribe({
      consumer: "listener",
      subjects: ["things.events"],
      handle: async (deliveries) => {
        heard.push(...deliveries);
        if (deliveries.some((delivery) => !delivery.redelivered)) throw new Error("the handler has a bug");
        return deliveries.map(() => done);
      },
    });
    const backAgain = () =>
      new Set(heard.filter((delivery) => delivery.redelivered).map(({ eventId }) => eventId)).size;
    await until("all three come back", () => backAgain() === 3);
  });

  test(`${name}: an event that fails every time does not hold up the others`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    const poison = thing({ eventType: "Poison" });
    const ear = await listen(process, {
      answer: ({ eventType }) => (eventType === "Poison" ? retry(20, "it always fails") : done),
    });
    await store(process, [poison]);
    await until("the poison came back", () => ear.timesHeard(poison) >= 2);
    const others = things(100);
    await store(process, others);
    await until("the others are through", () => others.every((event) => ear.timesHeard(event) === 1));
    const before = ear.timesHeard(poison);
    await until("the poison still comes", () => ear.timesHeard(poison) > before);
  });

  test(`${name}: hundreds that wait for their retry do not hold up the others`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    const aMinute = 60_000;
    const ear = await listen(process, {
      batchMax: 10,
      answer: ({ eventType }) => (eventType === "Poison" ? retry(aMinute, "it always fails") : done),
    });
    const others = things(20);
    await store(process, [...things(500, () => ({ eventType: "Poison" })), ...others]);
    await until("the others are through", () => others.every((event) => ear.timesHeard(event) === 1));
  });

  test(`${name}: a handler slower than the ack wait keeps its event`, async () => {
    await using stage = setStage(bus, { ackWaitMs });
    const process = await stage.open();
    const [slow, clock] = [thing({ eventType: "Slow" }), thing({ eventType: "Clock" })];
    const late = stage.gate();
    const ears = [await listenSlowly(), await listenSlowly()];
    const heard = (event: typeof slow) => ears.reduce((sum, ear) => sum + ear.timesHeard(event), 0);

    async function listenSlowly() {
      return listen(await stage.open(), {
        batchMax: 1,
        concurrency: 2,
        answer: async ({ eventType, redelivered }) => {
          if (eventType === "Slow") await late.opened;
          return eventType === "Clock" && !redelivered ? retry(longerMs, "a clock that the broker keeps") : done;
        },
      });
    }

    await store(process, [slow, clock]);
    await until("more than the ack wait has passed", () => heard(clock) === 2);
    assert.equal(heard(slow), 1);
    late.open();
  });
}

const redelivered = ({ heard }: { readonly heard: readonly Delivery[] }) =>
  heard.map((delivery) => delivery.redelivered);
