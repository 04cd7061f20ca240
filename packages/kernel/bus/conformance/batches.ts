/** How deliveries are handed over: as they come, and no more at once than was asked for. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import type { BusUnderTest } from "./index.ts";
import { listen, setStage, store, thing, things } from "./stage.ts";

export function batchesConform(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: what is there is handed over at once, and never more than batchMax`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const process = await stage.open();
    const sizes: number[] = [];
    await process.subscribe({
      consumer: "listener",
      subjects: ["things.events"],
      batchMax: 7,
      handle: async (deliveries) => {
        sizes.push(deliveries.length);
        return deliveries.map(() => done);
      },
    });
    await store(process, [thing()]);
    // Nothing else is published until then: a bus that waits for a batch to fill waits for ever.
    await until("the one event is handed over", () => sizes.length === 1);
    await store(process, things(50));
    await until("all are handed over", () => sizes.reduce((sum, size) => sum + size, 0) === 51);
    assert.ok(Math.max(...sizes) <= 7, `a batch of ${Math.max(...sizes)}`);
  });

  test(`${name}: as many batches are handled at the same time as were asked for, and not more`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    let running = 0;
    let most = 0;
    const busy = stage.gate();
    const ear = await listen(process, {
      batchMax: 1,
      concurrency: 3,
      answer: async () => {
        running += 1;
        most = Math.max(most, running);
        await busy.opened;
        running -= 1;
        return done;
      },
    });
    await store(process, things(20));
    await until("three run together", () => running === 3);
    busy.open();
    await until("all are heard", () => ear.heard.length === 20);
    assert.equal(most, 3);
  });

  test(`${name}: one batch at a time unless told otherwise`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    let running = 0;
    const overlaps: number[] = [];
    const ear = await listen(process, {
      batchMax: 1,
      answer: async () => {
        running += 1;
        overlaps.push(running);
        await new Promise(setImmediate);
        running -= 1;
        return done;
      },
    });
    await store(process, things(20));
    await until("all are heard", () => ear.heard.length === 20);
    assert.equal(Math.max(...overlaps), 1);
  });
}
