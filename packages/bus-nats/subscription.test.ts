import type { Delivery, EventBus } from "@todoke/kernel/bus";
import { openWire } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { listen, setStage, sharedServer, thing } from "./testing.ts";

const server = sharedServer();

/** Time by the server's clock: an event that is put off once. */
async function aWhile(bus: EventBus, ms: number): Promise<void> {
  const ticks: Delivery[] = [];
  await bus.publish([thing({ subject: "clock.ticks" })]);
  await listen(bus, {
    consumer: "clock",
    subjects: ["clock.ticks"],
    handle: async (deliveries) => {
      ticks.push(...deliveries);
      return deliveries.map(({ redelivered }) => (redelivered ? done : retry(ms, "a while")));
    },
  });
  await until(`${ms} ms have passed`, () => ticks.length === 2);
}

test("who asks for one more subject gets its past too", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  const [asked, notAsked] = [thing(), thing({ subject: "things.reservations" })];
  await bus.publish([asked, notAsked]);
  const before = await listen(bus);
  await until("the one subject is heard", () => before.length === 1);
  const after = await listen(bus, { subjects: ["things.events", "things.reservations"] });
  await until("both are heard", () => after.length === 2);
  expect(after.map(({ eventId }) => eventId)).toEqual([asked.eventId, notAsked.eventId]);
});

test("subjects that were not asked for are passed over, and leave nothing behind", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  const heard = await listen(bus, { subjects: ["things.a", "things.b"] });
  const subjects = ["things.a", "things.c", "things.b", "things.c", "things.a"];
  await bus.publish(subjects.map((subject) => thing({ subject })));
  await until("three are heard", () => heard.length === 3);
  expect(heard.map(({ subject }) => subject)).toEqual(["things.a", "things.b", "things.a"]);
  const info = () => stage.manager.consumers.info(stage.stream, "listener=a=b");
  await until("all are answered", async () => (await info()).num_ack_pending === 0 && (await info()).num_pending === 0);
});

test("a changed ack wait takes effect for a consumer that is there already", async () => {
  await using stage = await setStage(server);
  await listen(await stage.open({ ackWaitMs: 60_000 }));
  await listen(await stage.open({ ackWaitMs: 2_000, ackPendingMax: 77 }));
  const { config } = await stage.manager.consumers.info(stage.stream, "listener=events");
  expect(config).toMatchObject({ ack_wait: 2_000_000_000, max_ack_pending: 77, max_deliver: -1 });
});

test("what a handler does not answer comes again", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  const heard: boolean[] = [];
  await bus.publish([thing()]);
  await listen(bus, {
    handle: async (deliveries) => {
      heard.push(...deliveries.map(({ redelivered }) => redelivered));
      return heard.length === 1 ? [] : deliveries.map(() => done);
    },
  });
  await until("it came again", () => heard.length === 2);
  expect(heard).toEqual([false, true]);
});

test("a process holds no more than so many bytes, however large its batches may be", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open({ publishTimeoutMs: 60_000 });
  const events = Array.from({ length: 60 }, () => thing({ payload: new Uint8Array(900_000) }));
  await bus.publish(events);
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  let heard = 0;
  await listen(bus, {
    handle: async (deliveries) => {
      heard += deliveries.length;
      await finished;
      return deliveries.map(() => done);
    },
  });
  const info = () => stage.manager.consumers.info(stage.stream, "listener=events");
  await until("it has had all that it asked for", async () => heard > 0 && (await info()).num_waiting === 0);
  await aWhile(bus, 500);
  const { num_ack_pending, num_waiting } = await info();
  expect(num_ack_pending).toBeLessThan(40);
  expect(num_waiting).toBe(0);
  finish();
  await until("all are heard", () => heard === 60);
});

test("a subscription goes on after its connection broke", async () => {
  await using stage = await setStage(server);
  await using wire = await openWire(server.url);
  const heard = await listen(await stage.open({ url: wire.url, ackWaitMs: 1_000 }));
  const publisher = await stage.open();
  for (const round of [1, 2, 3]) {
    wire.hiccup();
    await publisher.publish([thing()]);
    await until(`event ${round} is heard`, () => heard.length >= round);
  }
});

test("a subscription goes on when the server's word was lost on the way", async () => {
  await using stage = await setStage(server);
  await using wire = await openWire(server.url);
  const heard = await listen(await stage.open({ url: wire.url, ackWaitMs: 2_000 }));
  wire.deafen();
  const publisher = await stage.open();
  await publisher.publish([thing()]);
  const pending = async () => (await stage.manager.consumers.info(stage.stream, "listener=events")).num_ack_pending;
  await until("it was sent, and not heard", async () => (await pending()) === 1);
  await until("the request is over", async () => (await waiting()) === 0);
  wire.listenAgain();
  await until("it is heard after all", () => heard.length >= 1);

  async function waiting() {
    return (await stage.manager.consumers.info(stage.stream, "listener=events")).num_waiting;
  }
});

test("subscribing to nowhere is refused", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  await expect(listen(bus, { subjects: ["nowhere"] })).rejects.toThrow("must be a service in lower case");
  await expect(listen(bus, { consumer: "no.dots" })).rejects.toThrow("must be 1 to 64 letters");
});
