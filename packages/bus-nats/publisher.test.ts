import { openWire } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { listen, setStage, sharedServer, thing } from "./testing.ts";

const server = sharedServer();

test("a lost answer is not known: the event is retried, and is stored once all the same", async () => {
  await using stage = await setStage(server);
  await using wire = await openWire(server.url);
  const unlucky = await stage.open({ url: wire.url, publishTimeoutMs: 300 });
  const event = thing();
  const warmUp = thing({ subject: "things.warm-up" });
  await until("the stream is there", async () => (await unlucky.publish([warmUp]))[0]?.kind === "done");
  wire.deafen();
  expect(await unlucky.publish([event])).toMatchObject([{ kind: "retry", why: "no answer within 300 ms" }]);

  const lucky = await stage.open();
  expect(await lucky.publish([event])).toEqual([done]);
  const last = thing();
  await lucky.publish([last]);
  const heard = await listen(lucky);
  await until("the last one is heard", () => heard.at(-1)?.eventId === last.eventId);
  expect(heard.map(({ eventId }) => eventId)).toEqual([event.eventId, last.eventId]);
});

test("when the connection breaks, what is in flight is answered at once and what comes later is stored", async () => {
  await using stage = await setStage(server);
  await using wire = await openWire(server.url);
  const bus = await stage.open({ url: wire.url, publishTimeoutMs: 60_000 });
  await bus.publish([thing()]);
  wire.deafen();
  const inFlight = bus.publish([thing(), thing()]);
  wire.hiccup();
  wire.listenAgain();
  expect(await inFlight).toMatchObject([{ kind: "retry" }, { kind: "retry" }]);
  await until("it is connected again", () =>
    bus.check().then(
      () => true,
      () => false,
    ),
  );
  expect(await bus.publish([thing()])).toEqual([done]);
});

test("a stream that is full gives events back, and takes them once there is room", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  expect(await bus.publish([thing()])).toEqual([done]);
  await stage.manager.streams.update(stage.stream, { max_msgs: 1 });
  const refused = thing();
  expect(await bus.publish([refused])).toMatchObject([
    { kind: "release", why: expect.stringMatching(/^maximum messages exceeded/) },
  ]);
  await stage.manager.streams.update(stage.stream, { max_msgs: 10 });
  expect(await bus.publish([refused])).toEqual([done]);
});

test("a call of any size is carried out, and answered in place", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open({ publishTimeoutMs: 60_000 });
  const events = Array.from({ length: 9_000 }, (_, n) => thing({ subject: n === 8_500 ? "nowhere" : "things.events" }));
  const outcomes = await bus.publish(events);
  expect(outcomes.map(({ kind }) => kind).indexOf("dead")).toBe(8_500);
  expect(outcomes.filter(({ kind }) => kind === "done")).toHaveLength(8_999);
  expect((await stage.manager.streams.info(stage.stream)).state.messages).toBe(8_999);
});

test("what can never be sent is dead, saying why, and does no harm to the others", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  const outcomes = await bus.publish([
    thing({ subject: "things.*" }),
    thing({ aggregateKey: "\ud800" }),
    thing({ headers: { "a:b": "c" } }),
    thing({ headers: { "x-large": "x".repeat(1_048_576) } }),
    thing(),
  ]);
  expect(outcomes).toMatchObject([
    { kind: "dead", why: expect.stringContaining('"things.*"') },
    { kind: "dead", why: expect.stringContaining("malformed") },
    { kind: "dead", why: expect.stringContaining("header name") },
    { kind: "dead", why: expect.stringContaining("max_payload") },
    done,
  ]);
});

test("an event larger than its stream takes is dead", async () => {
  await using stage = await setStage(server);
  await stage.manager.streams.add({ name: stage.stream, subjects: [`${stage.place}.things.>`], max_msg_size: 1_000 });
  const bus = await stage.open();
  expect(await bus.publish([thing({ payload: new Uint8Array(2_000) }), thing()])).toMatchObject([
    { kind: "dead" },
    done,
  ]);
});

test("a stream deleted under a publisher is made again", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  await bus.publish([thing()]);
  await stage.manager.streams.delete(stage.stream);
  const event = thing();
  expect(await bus.publish([event])).toMatchObject([
    { kind: "retry", why: expect.stringContaining("no stream takes") },
  ]);
  expect(await bus.publish([event])).toEqual([done]);
});

test("a subject that another stream has taken cannot be published to, and the reason says so", async () => {
  await using stage = await setStage(server);
  await stage.manager.streams.add({ name: `${stage.place}-other`, subjects: [`${stage.place}.things.events`] });
  const bus = await stage.open();
  await expect(bus.publish([thing()])).rejects.toMatchObject({ name: "BusUnavailable", message: /subjects overlap/ });
});
