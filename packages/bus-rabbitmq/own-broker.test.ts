/** What needs a broker with settings of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Engine, startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done, retry } from "@todoke/kernel/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listen, placeOn, startMs, subject, thing, things } from "./testing.ts";

const consumers = { listener: [subject] };

describe("a broker with low limits", () => {
  let broker: Engine;
  beforeAll(async () => {
    broker = await startEngine("rabbitmq", { settings: { max_message_size: "50000" } });
  }, startMs);
  afterAll(() => broker[Symbol.asyncDispose](), startMs);

  test("a channel that closes in mid-confirm: only the event that closed it is dead, and nothing is lost", async () => {
    await using place = placeOn(broker.url);
    const bus = await place.open({ consumers });
    const events = things(200);
    events[100] = thing({ payload: Buffer.alloc(60_000) });
    const outcomes = await bus.publish(events);
    expect(outcomes[100]).toEqual({ kind: "dead", why: "its payload has 60000 bytes, and 50000 is the most" });
    const unsure = events.filter((_, n) => outcomes[n]?.kind === "retry");
    expect(unsure.length).toBeGreaterThanOrEqual(99);
    expect(outcomes.filter(({ kind }) => kind === "done").length + unsure.length).toBe(199);

    // Now the limit is known: the same mistake costs the others nothing.
    const secondTime = await bus.publish([...unsure, thing({ payload: Buffer.alloc(60_000) })]);
    expect(secondTime.map(({ kind }) => kind)).toEqual([...unsure.map(() => "done"), "dead"]);
    const ear = await listen(await place.open());
    const heard = () => new Set(ear.heard.map(({ eventId }) => eventId));
    await until("every other event arrives", () => heard().size === 199);
  });
});

test(
  "a broker that runs short of memory stops publishers, not consumers",
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "todoke-test-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const roomy = stack.use(await startEngine("rabbitmq", { dir }));
    let short: Engine | undefined;
    stack.defer(() => short?.[Symbol.asyncDispose]());
    const place = stack.use(placeOn(roomy.url));
    const bus = await place.open({ consumers, newQueueRestMs: 1_500, publishTimeoutMs: 5_000 });
    const events = things(5);
    expect(await bus.publish(events)).toEqual(events.map(() => done));

    await roomy.kill();
    const settings = { "vm_memory_high_watermark.absolute": "1MB" };
    short = await startEngine("rabbitmq", { dir, settings, port: Number(new URL(roomy.url).port) });
    const refusal = () =>
      bus.publish([thing({ eventType: "Probe" })]).then(
        () => "",
        (error: Error) => error.message,
      );
    // The broker tells publishers, and only once they publish; what it read before that it may still store.
    await until("publishing is refused", async () => (await refusal()).includes("low on memory"));
    const ear = await listen(await place.open(), ({ eventType, redelivered }) =>
      eventType === "Probe" || redelivered ? done : retry(10, "it cannot be put off now"),
    );
    const timesHeard = (eventId: string) => ear.heard.filter((delivery) => delivery.eventId === eventId).length;
    await until("all are heard, and heard again", () => events.every(({ eventId }) => timesHeard(eventId) >= 2));
  },
  2 * startMs,
);
