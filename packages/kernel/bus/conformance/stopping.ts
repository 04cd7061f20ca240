/** A process that stops finishes what it handles and gives the rest back at once. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done, release, retry } from "../../worker/outcome.ts";
import type { EventBus } from "../index.ts";
import type { BusUnderTest } from "./index.ts";
import { type Ear, ids, listen, setStage, store, thing, things } from "./stage.ts";

export function stoppingConforms(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: a subscription that closes waits for its handlers and gives the rest to others at once`, () =>
    handOver(bus, (_, ear) => ear[Symbol.asyncDispose]()));

  test(`${name}: a bus that closes waits for its handlers and gives the rest to others at once`, () =>
    handOver(bus, (process) => process[Symbol.asyncDispose]()));

  test(`${name}: a handler that is told to stop can release its batch to another process`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const end = stage.gate();
    const event = thing();
    const leaving = await listen(await stage.open(), {
      answer: async (_, stopping) => {
        await Promise.race([
          end.opened,
          new Promise((told) => stopping.addEventListener("abort", told, { once: true })),
        ]);
        return release("the process stops");
      },
    });
    await store(await stage.open(), [event]);
    await until("it is being handled", () => leaving.timesHeard(event) === 1);
    const staying = await listen(await stage.open());
    await leaving[Symbol.asyncDispose]();
    // Long before the broker takes anybody for dead: it was given back.
    await until("another process has it", () => staying.timesHeard(event) === 1);
  });

  test(`${name}: a closed bus can be closed again, and refuses to publish`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    await process[Symbol.asyncDispose]();
    await process[Symbol.asyncDispose]();
    await assert.rejects(process.publish([thing()]), { name: "BusUnavailable" });
  });
}

async function handOver(bus: BusUnderTest, close: (process: EventBus, ear: Ear) => PromiseLike<void>): Promise<void> {
  await using stage = setStage(bus);
  await stage.introduce();
  const events = things(10);
  await store(await stage.open(), events);

  const working = stage.gate();
  const process = await stage.open();
  const leaving = await listen(process, { batchMax: 2, answer: () => working.opened.then(() => done) });
  await until("it has begun", () => leaving.heard.length > 0);
  const inHand = new Set(ids(leaving.heard));

  let isClosed = false;
  const closed = Promise.resolve(close(process, leaving)).then(() => {
    isClosed = true;
  });
  const clock = thing();
  const staying = await listen(await stage.open(), {
    answer: ({ eventId, redelivered }) =>
      eventId === clock.eventId && !redelivered ? retry(300, "a clock that the broker keeps") : done,
  });
  const rest = events.filter(({ eventId }) => !inHand.has(eventId));
  const hasTheRest = () => rest.every((event) => staying.timesHeard(event) === 1);
  // Long before the broker takes anybody for dead: they were given back.
  await until("another process has the rest", hasTheRest);
  assert.equal(isClosed, false);

  working.open();
  await closed;
  await store(await stage.open(), [clock]);
  await until("some time has passed", () => staying.timesHeard(clock) === 2);
  // What was finished while closing was answered: it did not come back.
  assert.deepEqual(new Set(ids(leaving.heard)), inHand);
  assert.equal(staying.heard.length, rest.length + 2);
}
