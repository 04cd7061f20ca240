/** Brokers that die and networks that are cut: nothing acknowledged is lost, and nobody waits for ever. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../testing/index.ts";
import { BusUnavailable, type Envelope, type EventBus } from "../index.ts";
import type { BusUnderTest } from "./index.ts";
import { ids, listen, setStage, thing, things, within } from "./stage.ts";

/** A caller that waits longer than this for an answer has been forgotten. */
const answerWithinMs = 30_000;
/** RabbitMQ takes its time to start. */
const restartWithinMs = 120_000;

export function faultsConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: publishing to a broker that cannot be reached rejects with BusUnavailable, soon`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    await bus.crash(process);
    const published = process.publish([thing()]);
    await assert.rejects(within(answerWithinMs, "publish gives up", published), { name: "BusUnavailable" });
    await assert.rejects(within(answerWithinMs, "check gives up", process.check()), BusUnavailable);
  });

  test(
    `${name}: kill -9 of the broker in the middle of it all loses nothing that was answered "done"`,
    async () => {
      if (!bus.ownBroker) throw new Error(`${name}: this run has no broker of its own that could be killed`);
      await using broker = await bus.ownBroker();
      await using stage = setStage(bus, { on: broker, ackWaitMs: 2_000 });
      // One consumer listens all the while; for the other everything is kept until the broker is back.
      await stage.introduce("latecomer");
      const ear = await listen(await stage.open(), { batchMax: 50 });

      let isBack = false;
      const publishing = publishStubbornly(await stage.open(), (count) => isBack && count >= 2_000);
      await until("it is in full swing", () => ear.heard.length >= 300);
      await broker.restart();
      isBack = true;
      const published = new Set(await within(restartWithinMs, "all are published", publishing));

      const late = await listen(await stage.open(), { consumer: "latecomer" });
      for (const { heard } of [ear, late]) {
        const isComplete = () => published.isSubsetOf(new Set(ids(heard)));
        await until("all are heard", isComplete, { withinMs: restartWithinMs });
      }
    },
    3 * restartWithinMs,
  );
}

/**
 * Publishes as the relay does, without a pause: twenty aggregates in step, each event again and again until it is
 * answered "done". Gives the ids of all that were.
 */
async function publishStubbornly(bus: EventBus, isEnough: (count: number) => boolean): Promise<string[]> {
  const published: string[] = [];
  while (!isEnough(published.length)) {
    let left = things(20, (n) => ({ aggregateKey: `account/${n}` }));
    published.push(...ids(left));
    // A bus in memory answers within the same turn: let others have theirs.
    await new Promise(setImmediate);
    while (left.length > 0) {
      const outcomes = await within(answerWithinMs, "publish answers", answersOrNothing(bus, left));
      left = left.filter((_, n) => outcomes[n]?.kind !== "done");
      // The broker is away: there is no state to wait for but its return.
      if (left.length > 0) await sleep(20);
    }
  }
  return published;
}

async function answersOrNothing(bus: EventBus, events: readonly Envelope[]) {
  try {
    return await bus.publish(events);
  } catch (error) {
    if (error instanceof BusUnavailable) return [];
    throw error;
  }
}
