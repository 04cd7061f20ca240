import { openFaultProxy } from "@todoke/kernel/bus/conformance";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { createHarness, recordDeliveries, sampleEvent, sharedServer } from "./testing.ts";

const server = sharedServer();

test("an event is stored once when its publish ack is lost", async () => {
  await using harness = await createHarness(server);
  await using wire = await openFaultProxy(server.url);
  const unlucky = await harness.open({ url: wire.url, publishTimeoutMs: 300 });
  const event = sampleEvent();
  const warmUp = sampleEvent({ subject: "things.warm-up" });
  await until("the stream exists", async () => (await unlucky.publish([warmUp]))[0]?.kind === "done");
  wire.dropResponses();
  expect(await unlucky.publish([event])).toMatchObject([{ kind: "retry", reason: "no answer within 300 ms" }]);

  const lucky = await harness.open();
  expect(await lucky.publish([event])).toEqual([done]);
  const last = sampleEvent();
  await lucky.publish([last]);
  const received = await recordDeliveries(lucky);
  await until("the last one is received", () => received.at(-1)?.eventId === last.eventId);
  expect(received.map(({ eventId }) => eventId)).toEqual([event.eventId, last.eventId]);
});

test("publishes in flight end with retry when the connection is lost; later ones are stored", async () => {
  await using harness = await createHarness(server);
  await using wire = await openFaultProxy(server.url);
  const bus = await harness.open({ url: wire.url, publishTimeoutMs: 60_000 });
  await bus.publish([sampleEvent()]);
  wire.dropResponses();
  const inFlight = bus.publish([sampleEvent(), sampleEvent()]);
  wire.closeConnections();
  wire.stopDropping();
  expect(await inFlight).toMatchObject([{ kind: "retry" }, { kind: "retry" }]);
  await until("it is reconnected", () =>
    bus.check().then(
      () => true,
      () => false,
    ),
  );
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
});

test("a full stream releases events and stores them once there is room", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  await harness.manager.streams.update(harness.stream, { max_msgs: 1 });
  const refused = sampleEvent();
  expect(await bus.publish([refused])).toMatchObject([
    { kind: "release", reason: expect.stringMatching(/^maximum messages exceeded/) },
  ]);
  await harness.manager.streams.update(harness.stream, { max_msgs: 10 });
  expect(await bus.publish([refused])).toEqual([done]);
});

test("a publish of any size returns its outcomes in input order", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open({ publishTimeoutMs: 60_000 });
  const events = Array.from({ length: 9_000 }, (_, n) =>
    sampleEvent({ subject: n === 8_500 ? "nowhere" : "things.events" }),
  );
  const outcomes = await bus.publish(events);
  expect(outcomes.map(({ kind }) => kind).indexOf("dead")).toBe(8_500);
  expect(outcomes.filter(({ kind }) => kind === "done")).toHaveLength(8_999);
  expect((await harness.manager.streams.info(harness.stream)).state.messages).toBe(8_999);
});

test("an event that can never be sent is dead with a reason; the others are stored", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  const outcomes = await bus.publish([
    sampleEvent({ subject: "things.*" }),
    sampleEvent({ aggregateKey: "\ud800" }),
    sampleEvent({ headers: { "a:b": "c" } }),
    sampleEvent({ headers: { "x-large": "x".repeat(1_048_576) } }),
    sampleEvent(),
  ]);
  expect(outcomes).toMatchObject([
    { kind: "dead", reason: expect.stringContaining('"things.*"') },
    { kind: "dead", reason: expect.stringContaining("malformed") },
    { kind: "dead", reason: expect.stringContaining("header name") },
    { kind: "dead", reason: expect.stringContaining("max_payload") },
    done,
  ]);
});

test("an event larger than its stream allows is dead", async () => {
  await using harness = await createHarness(server);
  await harness.manager.streams.add({
    name: harness.stream,
    subjects: [`${harness.namespace}.things.>`],
    max_msg_size: 1_000,
  });
  const bus = await harness.open();
  expect(await bus.publish([sampleEvent({ payload: new Uint8Array(2_000) }), sampleEvent()])).toMatchObject([
    { kind: "dead" },
    done,
  ]);
});

test("a deleted stream is created again by a publisher", async () => {
  await using harness = await createHarness(server);
  const bus = await harness.open();
  await bus.publish([sampleEvent()]);
  await harness.manager.streams.delete(harness.stream);
  const event = sampleEvent();
  expect(await bus.publish([event])).toMatchObject([
    { kind: "retry", reason: expect.stringContaining("no stream takes") },
  ]);
  expect(await bus.publish([event])).toEqual([done]);
});

test("publishing to a subject of another stream fails with the reason", async () => {
  await using harness = await createHarness(server);
  await harness.manager.streams.add({
    name: `${harness.namespace}-other`,
    subjects: [`${harness.namespace}.things.events`],
  });
  const bus = await harness.open();
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /subjects overlap/,
  });
});
