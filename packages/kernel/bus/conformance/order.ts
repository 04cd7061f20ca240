/** In which order events of one aggregate come. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done, retry } from "../../worker/outcome.ts";
import type { Delivery, Envelope } from "../index.ts";
import type { BusUnderTest } from "./index.ts";
import { type Ear, ids, listen, setStage, storeInOrder, things } from "./stage.ts";

const keys = Array.from({ length: 8 }, (_, n) => `account/${n}`);

export function orderConforms(bus: BusUnderTest): void {
  const { name, test, promises } = bus;

  test(`${name}: first deliveries of an aggregate come in the order of publication, whoever else publishes`, async () => {
    await using stage = setStage(bus);
    const ear = await listen(await stage.open(), { batchMax: 10 });
    const publishers = [await stage.open(), await stage.open()] as const;
    const histories = keys.map((aggregateKey) => things(25, () => ({ aggregateKey })));
    await Promise.all(histories.map((history, n) => storeInOrder(publishers[n % 2 === 0 ? 0 : 1], history)));
    await until("all are heard", () => ear.heard.length >= 200);
    assertOrdered(ear.heard, histories);
  });

  const afterRetry = promises.ordersAfterRetry
    ? `${name}: an event that is retried holds back the later events of its aggregate, and no others`
    : `${name}: order after a retry is not promised: later events may pass the retried one, and none is lost`;
  test(afterRetry, async () => {
    await using stage = setStage(bus);
    const finished: Delivery[] = [];
    const others = things(4, () => ({ aggregateKey: "b" }));
    let stumbles = 0;
    const ear = await listen(await stage.open(), {
      answer: (delivery) => {
        // Until all the others are through, whenever that is: were they held back too, it would be never.
        if (delivery.eventType === "Stumbles" && byKey(finished, "b").length < others.length) {
          stumbles += 1;
          return retry(300, "it stumbles");
        }
        finished.push(delivery);
        return done;
      },
    });
    const stumbling = things(4, (n) => ({ aggregateKey: "a", eventType: n === 0 ? "Stumbles" : "Walks" }));
    const process = await stage.open();
    await storeInOrder(process, stumbling);
    await storeInOrder(process, others);
    await until("all are finished", () => finished.length === 8);
    assert.deepEqual(byKey(finished, "b"), ids(others));
    if (promises.ordersAfterRetry) assert.deepEqual(byKey(finished, "a"), ids(stumbling));
    assert.ok(stumbles > 0);
    assert.equal(ear.heard.length, 8 + stumbles);
  });

  const acrossProcesses = promises.ordersAcrossProcesses
    ? `${name}: an aggregate's events are handled one after another, also by many processes`
    : `${name}: order across processes is not promised: two may handle one aggregate at once, and none is lost`;
  test(acrossProcesses, async () => {
    await using stage = setStage(bus);
    const open = new Map<string, number>();
    const finished: Delivery[] = [];
    let together = 0;
    const listenInTurns = async (): Promise<Ear> =>
      listen(await stage.open(), {
        batchMax: 4,
        concurrency: 2,
        answer: async (delivery) => {
          const already = open.get(delivery.aggregateKey) ?? 0;
          together = Math.max(together, already + 1);
          open.set(delivery.aggregateKey, already + 1);
          await new Promise(setImmediate);
          finished.push(delivery);
          open.set(delivery.aggregateKey, (open.get(delivery.aggregateKey) ?? 0) - 1);
          return done;
        },
      });
    await Promise.all([listenInTurns(), listenInTurns(), listenInTurns()]);
    const histories = keys.map((aggregateKey) => things(15, () => ({ aggregateKey })));
    const process = await stage.open();
    await Promise.all(histories.map((history) => storeInOrder(process, history)));
    await until("all are finished", () => finished.length >= 120);
    assert.equal(new Set(ids(finished)).size, 120);
    if (promises.ordersAcrossProcesses) {
      assert.equal(together, 1);
      assertOrdered(finished, histories);
    }
  });
}

/** Compares, aggregate by aggregate, what came with what was published. */
function assertOrdered(heard: readonly Delivery[], histories: readonly (readonly Envelope[])[]): void {
  for (const history of histories) assert.deepEqual(byKey(heard, history[0]?.aggregateKey), ids(history));
}

const byKey = (heard: readonly Delivery[], key: string | undefined): string[] =>
  ids(heard.filter((delivery) => delivery.aggregateKey === key));
