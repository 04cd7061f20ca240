import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { openWire } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done, release, retry } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import {
  behindTheBus,
  declareQueue,
  type Ear,
  listen,
  openTalkingWire,
  placeOn,
  sharedBroker,
  subject,
  thing,
  things,
} from "./testing.ts";

const broker = sharedBroker();

test("an event given back more often than its queue allows is not lost, and check tells of the limit", async () => {
  await using place = placeOn(broker.url);
  const queue = place.queueOf("listener");
  const args = { "x-queue-type": "quorum", "x-delivery-limit": 15, "x-overflow": "reject-publish" };
  await declareQueue(broker.url, queue, args);
  const bus = await place.open();
  let times = 0;
  const ear = await listen(bus, () => (++times <= 40 ? release("not now") : done));
  await bus.publish([thing()]);
  await until("it has come 41 times", () => ear.heard.length === 41);
  expect(ear.heard.map(({ redelivered }) => redelivered)).toEqual(ear.heard.map((_, n) => n > 0));
  expect(new Set(ear.heard.map((delivery) => delivery.subject))).toEqual(new Set([subject]));
  const { warnings } = await bus.check();
  expect(warnings).toEqual([
    expect.stringMatching(/listener has other settings .* inequivalent arg 'x-delivery-limit'/),
  ]);
});

test("a long retry does not hold up a short one behind it", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open();
  const [long, short] = [thing({ eventType: "Long" }), thing({ eventType: "Short" })];
  const ear = await listen(bus, ({ eventType, redelivered }) =>
    redelivered ? done : retry(eventType === "Long" ? 3_600_000 : 50, "later"),
  );
  await bus.publish([long]);
  await until("the long one waits", () => ear.heard.length === 1);
  await bus.publish([short]);
  await until("the short one is back", () => ear.heard.length === 3);
  expect(ear.heard.map(({ eventType }) => eventType)).toEqual(["Long", "Short", "Short"]);
});

test("a wait longer than the longest step is made of several, and comes out no shorter", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open({ delayStepsMs: [100] });
  const times: number[] = [];
  const ear = await listen(bus, ({ redelivered }) => {
    times.push(performance.now());
    return redelivered ? done : retry(350, "later");
  });
  const event = thing({ headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } });
  await bus.publish([event]);
  await until("it is back", () => times.length === 2);
  const [sent = 0, back = 0] = times;
  expect(back - sent).toBeGreaterThanOrEqual(350);
  const { redelivered, ...received } = ear.heard[1] ?? expect.fail("it is not there");
  expect(redelivered).toBe(true);
  expect(received).toEqual(event);
});

test("a retry comes back also when it cannot be put off", async () => {
  await using place = placeOn(broker.url);
  // Somebody made a queue of that name which would drop what waits in it.
  const queue = `${place.queueOf("listener")}.retry.100ms`;
  const args = { "x-queue-type": "quorum", "x-message-ttl": 100 };
  await declareQueue(broker.url, queue, args);
  const bus = await place.open();
  const ear = await listen(bus, ({ redelivered }) => (redelivered ? done : retry(80, "later")));
  await bus.publish(things(3));
  await until("all three are back", () => ear.heard.length === 6);
  expect((await bus.check()).warnings).toEqual([expect.stringContaining(`${queue} is not used for retries`)]);
});

test("a delay queue that somebody deletes is made again, and the retry that found it gone is not lost", async () => {
  await using place = placeOn(broker.url);
  const queue = `${place.queueOf("listener")}.retry.100ms`;
  const bus = await place.open();
  const ear = await listen(bus, ({ redelivered }) => (redelivered ? done : retry(80, "later")));
  await bus.publish([thing()]);
  await until("the first is back", () => ear.heard.length === 2);
  await behindTheBus(broker.url, (channel) => channel.queueDelete({ queue }));
  await bus.publish([thing()]);
  await until("the second is back", () => ear.heard.length === 4);
  await bus.publish([thing()]);
  await until("the third is back", () => ear.heard.length === 6);
  // The broker lets go of what waited there once its own queue has it.
  await until("nothing is left there", async () => (await place.countIn(queue)) === 0);
});

test("a consumer whose queue is deleted makes it again and goes on", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open();
  const ear = await listen(bus);
  await bus.publish([thing()]);
  await until("the first is heard", () => ear.heard.length === 1);
  await behindTheBus(broker.url, (channel) => channel.queueDelete({ queue: place.queueOf("listener") }));
  await until("an event is taken again", async () => (await bus.publish([thing()]))[0]?.kind === "done");
  await until("it is heard", () => ear.heard.length >= 2);
});

test("an answer that comes after its connection broke is dropped, and the event comes again", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openWire(broker.url);
  const said: string[] = [];
  const bus = await place.open({ url: wire.url, log: (message) => said.push(message) });
  const late = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  const ear = await listen(bus, async ({ redelivered }) => {
    most = Math.max(most, ++running);
    if (!redelivered) await late.promise;
    running -= 1;
    return done;
  });
  const publisher = await place.open();
  await publisher.publish([thing()]);
  await until("it is being handled", () => ear.heard.length === 1);
  wire.hiccup();
  await until("the process has noticed", () => said.some((message) => message.includes("stopped delivering")));
  const clock: Ear[] = [];
  // It is refused until there is a connection again. The queue alone does not tell: until the broker has missed the old
  // connection, it counts the old consumer there.
  await until("it is connected again", async () => {
    const listening = listen(bus, () => done, { consumer: "clock", subjects: ["clock.events"] });
    clock.push(...(await listening.then((ear) => [ear]).catch(() => [])));
    return clock.length === 1;
  });
  const queue = place.queueOf("listener");
  const isUnderWay = async () => {
    const { consumerCount, messageCount } = await place.look(queue);
    return consumerCount === 1 && messageCount === 0;
  };
  await until("the event is under way to it again", isUnderWay);
  // When another consumer of this process has heard something, the event has arrived.
  await publisher.publish([thing({ subject: "clock.events" })]);
  await until("the clock has ticked", () => clock[0]?.heard.length === 1);
  late.resolve();
  await until("it is handled again", () => ear.heard.length === 2);
  // One at a time was asked for: the new channel waits for the handler that the old one left busy.
  expect(most).toBe(1);
});

test("nothing is begun any more once closing has begun, however long the broker takes to hear of it", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openTalkingWire(broker.url);
  const bus = await place.open({ url: wire.url });
  let begun = 0;
  const subscription = await bus.subscribe({
    consumer: "listener",
    subjects: [subject],
    batchMax: 1,
    handle: async (deliveries, stopping) => {
      begun += 1;
      if (!stopping.aborted) await once(stopping, "abort");
      return deliveries.map(() => done);
    },
  });
  await bus.publish(things(2));
  const queue = place.queueOf("listener");
  await until("one is begun, and the other waits here", async () => begun === 1 && (await place.countIn(queue)) === 0);
  wire.hold();
  const closing = subscription[Symbol.asyncDispose]();
  for (let turns = 0; turns < 10; turns++) await turn();
  wire.release();
  await closing;
  expect(begun).toBe(1);
  await until("the other is back in its queue", async () => (await place.countIn(queue)) === 1);
});

test("a handler that gives fewer answers than it got deliveries gets the rest again", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open({ retryMs: 50 });
  const times = new Map<string, number>();
  await bus.subscribe({
    consumer: "listener",
    subjects: [subject],
    handle: async (deliveries) => {
      for (const { eventId } of deliveries) times.set(eventId, (times.get(eventId) ?? 0) + 1);
      return deliveries.every(({ redelivered }) => redelivered) ? deliveries.map(() => done) : [];
    },
  });
  await bus.publish(things(3));
  await until("all three came twice", () => [...times.values()].filter((n) => n >= 2).length === 3);
});

test("a classic queue of the consumer's name is used, with a warning", async () => {
  await using place = placeOn(broker.url);
  const queue = place.queueOf("listener");
  await declareQueue(broker.url, queue);
  const said: string[] = [];
  const bus = await place.open({ log: (message) => said.push(message) });
  const ear = await listen(bus, ({ redelivered }) => (redelivered ? done : retry(20, "later")));
  await bus.publish([thing()]);
  await until("it is back", () => ear.heard.length === 2);
  const { warnings } = await bus.check();
  expect(warnings).toEqual([expect.stringContaining("listener has other settings than Todoke gives it")]);
  expect(said).toEqual(warnings);
});

test("a stream of the consumer's name is refused: it would never let go of an event", async () => {
  await using place = placeOn(broker.url);
  const queue = place.queueOf("listener");
  const args = { "x-queue-type": "stream" };
  await declareQueue(broker.url, queue, args);
  const bus = await place.open();
  await expect(listen(bus)).rejects.toThrow(`${queue} is a stream`);
});

test("a message that is not ours is handed over under a name of its own, which stays the same", async () => {
  await using place = placeOn(broker.url);
  const bus = await place.open();
  const ear = await listen(bus, ({ redelivered }) => (redelivered ? done : retry(20, "what is it?")));
  await behindTheBus(broker.url, async (channel) => {
    // Or the broker might drop what it was sent just before the channel closed.
    await channel.confirmSelect();
    await channel.basicPublish({ exchange: place.name, routingKey: subject }, { not: "an event" });
    await channel.basicPublish({ exchange: place.name, routingKey: subject }, "nor this");
  });
  await until("both came twice", () => ear.heard.length === 4);
  const payloads = ear.heard.map(({ payload }) => Buffer.from(payload).toString());
  expect(new Set(payloads)).toEqual(new Set(['{"not":"an event"}', "nor this"]));
  expect(new Set(ear.heard.map(({ eventId }) => eventId)).size).toBe(2);
});

test("subscribing while the broker is away is refused, not forgotten", async () => {
  await using place = placeOn(broker.url);
  await using wire = await openWire(broker.url);
  wire.cut();
  const bus = await place.open({ url: wire.url });
  await expect(listen(bus)).rejects.toMatchObject({ name: "BusUnavailable" });
});

test.each([{ batchMax: 0 }, { concurrency: 0 }, { consumer: "a name" }])(
  "a subscription with %j is refused",
  async (wrong) => {
    await using place = placeOn(broker.url);
    const bus = await place.open();
    const wish = { consumer: "listener", subjects: [subject], handle: async () => [] };
    await expect(bus.subscribe({ ...wish, ...wrong })).rejects.toThrow(/must be/);
  },
);

test("a log that throws disturbs nothing", async () => {
  await using place = placeOn(broker.url);
  const log = () => {
    throw new Error("the disk of the log is full");
  };
  const bus = await place.open({ log, retryMs: 20 });
  const ear = await listen(bus, ({ redelivered }) => {
    if (!redelivered) throw new Error("the handler has a bug");
    return done;
  });
  await bus.publish([thing()]);
  await until("it came again", () => ear.heard.length === 2);
});
