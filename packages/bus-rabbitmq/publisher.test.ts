import { BusUnavailable } from "@todoke/kernel/bus";
import { openWire } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import {
  behindTheBus,
  blocked,
  declareQueue,
  listen,
  openTalkingWire,
  placeOn,
  sharedBroker,
  subject,
  thing,
  things,
  unblocked,
} from "./testing.ts";

const broker = sharedBroker();
const consumers = { listener: [subject] };

test("an event that no queue takes is not done, and its answer says what to do about it", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open();
  const [outcome] = await bus.publish([thing({ subject: "nobody.cares" })]);
  expect(outcome).toMatchObject({
    kind: "release",
    why: expect.stringContaining("no queue is bound for nobody.cares"),
  });
});

test("of many events on their way, only those that no queue takes come back", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open({ consumers });
  const events = Array.from({ length: 300 }, (_, n) => thing({ subject: n % 3 === 0 ? "nobody.cares" : subject }));
  const batches = [events.slice(0, 100), events.slice(100, 200), events.slice(200)];
  const outcomes = (await Promise.all(batches.map((batch) => bus.publish(batch)))).flat();
  expect(outcomes.map(({ kind }) => kind)).toEqual(events.map((_, n) => (n % 3 === 0 ? "release" : "done")));
  await until("the others are stored", async () => (await place.countIn(place.queueOf("listener"))) === 200);
});

test("of an event that is on its way several times, no copy that came back is called done", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open();
  const event = thing();
  const outcomes = (await Promise.all([bus.publish([event, event, event]), bus.publish([event])])).flat();
  expect(outcomes.map(({ kind }) => kind)).toEqual(["release", "release", "release", "release"]);
});

test("events are kept for a consumer that the publisher names, though it never ran", async () => {
  await using place = placeOn(broker.url);
  const events = things(5);
  const publisher = await place.open({ consumers });
  expect(await publisher.publish(events)).toEqual(events.map(() => done));
  const ear = await listen(await place.open());
  await until("the newcomer has them", () => ear.heard.length === 5);
});

test("an exchange that somebody deletes is made again, and nothing that found it gone is called done", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open({ consumers });
  await bus.publish([thing()]);
  await behindTheBus(broker.url, (channel) => channel.exchangeDelete({ exchange: place.name }));
  const events = things(100);
  const outcomes = await bus.publish(events);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["retry"]));
  expect(await bus.publish(events)).toEqual(events.map(() => done));
  await until("all are stored", async () => (await place.countIn(place.queueOf("listener"))) === 101);
});

test("a queue that is full refuses, and the event is to be tried again", async () => {
  await using place = placeOn(broker.url);
  const queue = place.queueOf("listener");
  const args = { "x-queue-type": "quorum", "x-max-length": 5, "x-overflow": "reject-publish" };
  await declareQueue(broker.url, queue, args);
  const bus = await place.open({ consumers });
  const outcomes = [];
  for (const event of things(20)) outcomes.push(...(await bus.publish([event])));
  expect(outcomes.at(-1)).toMatchObject({ kind: "release", why: expect.stringContaining("rejected by server") });
  const stored = outcomes.filter(({ kind }) => kind === "done").length;
  await until("those that were taken are stored", async () => (await place.countIn(queue)) === stored);
});

test("a broker that falls silent gets as long as was asked for, and then the event is to be tried again", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openWire(broker.url);
  const bus = await place.open({ url: wire.url, consumers, publishTimeoutMs: 300 });
  await until("the way is open", async () => (await bus.publish([thing()]).catch(() => []))[0]?.kind === "done");
  wire.deafen();
  const [outcome] = await bus.publish([thing()]);
  expect(outcome).toMatchObject({ kind: "retry", why: "RabbitMQ did not confirm it within 300 ms" });
});

test("while the broker takes no messages publishing is refused at once, and it works again when the broker does", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openTalkingWire(broker.url);
  const bus = await place.open({ url: wire.url, consumers });
  expect(await bus.publish([thing()])).toEqual([done]);

  wire.say(blocked("low on memory"));
  await until("the bus knows", async () => (await bus.check()).warnings.length === 1);
  expect((await bus.check()).warnings).toEqual([expect.stringContaining("takes no messages (low on memory)")]);
  await expect(bus.publish([thing()])).rejects.toThrow(
    new BusUnavailable("RabbitMQ takes no messages at the moment: low on memory"),
  );

  wire.say(unblocked());
  await until("the bus knows", async () => (await bus.check()).warnings.length === 0);
  expect(await bus.publish([thing()])).toEqual([done]);
});

test("a bus can be closed while the broker takes no messages", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openTalkingWire(broker.url);
  const bus = await place.open({ url: wire.url, consumers });
  await bus.publish([thing()]);
  wire.say(blocked("low on disk"));
  await until("the bus knows", async () => (await bus.check()).warnings.length === 1);
  await bus[Symbol.asyncDispose]();
  await expect(bus.publish([thing()])).rejects.toThrow("this bus is closed");
});
