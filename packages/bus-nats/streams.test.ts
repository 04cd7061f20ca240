import { DiscardPolicy, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { listen, setStage, sharedServer, thing } from "./testing.ts";

const server = sharedServer();

/** Told by the server, a repair is a matter of moments; left in the dark ("nothing"), it takes as long as a request. */
const toldByServer = /answered "409 Consumer Deleted"; making sure of it$/;

test("a stream is made so that it keeps what it was given", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open();
  await bus.publish([thing()]);
  const { config } = await stage.manager.streams.info(stage.stream);
  expect(config).toMatchObject({
    subjects: [`${stage.place}.things.>`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_age: nanos(7 * 86_400_000),
    duplicate_window: nanos(600_000),
    deny_delete: true,
    deny_purge: true,
  });
  expect(await bus.check()).toMatchObject({ engine: expect.stringMatching(/^nats-server \d/), warnings: [] });
});

test("many processes may be the first to use a stream, also when they would make it differently", async () => {
  await using stage = await setStage(server);
  const days = (n: number) => ({ streams: { maxAgeMs: n * 86_400_000 } });
  const processes = await Promise.all(Array.from({ length: 8 }, (_, n) => stage.open(days(7 + (n % 4)))));
  const outcomes = await Promise.all(processes.map((bus) => bus.publish([thing()])));
  await Promise.all(processes.map((bus) => listen(bus)));
  expect(outcomes.flat()).toEqual(Array(8).fill(done));
});

test("a stream that was set up otherwise is left as it is, and check says what each difference costs", async () => {
  await using stage = await setStage(server);
  const weak = {
    name: stage.stream,
    subjects: [`${stage.place}.things.>`],
    storage: StorageType.Memory,
    retention: RetentionPolicy.Interest,
    discard: DiscardPolicy.Old,
    max_age: nanos(3_600_000),
    duplicate_window: nanos(120_000),
    max_msgs_per_subject: 5,
  };
  await stage.manager.streams.add({ ...weak });
  const bus = await stage.open({ streams: { replicas: 3 } });
  await listen(bus);
  expect(await bus.publish([thing()])).toEqual([done]);
  const { config } = await stage.manager.streams.info(stage.stream);
  expect(config).toMatchObject(weak);
  const { warnings } = await bus.check();
  for (const cost of [
    "in memory",
    "once they are read",
    "unread events",
    "sooner",
    "duplicates",
    "per subject",
    "fewer copies",
    "delete",
    "emptied",
  ]) {
    expect(warnings).toContainEqual(expect.stringMatching(new RegExp(`^The stream ${stage.stream} .*${cost}.*\\.$`)));
  }
  expect(warnings).toHaveLength(9);
});

test("a full stream refuses, and keeps what nobody has read", async () => {
  await using stage = await setStage(server);
  const bus = await stage.open({ streams: { maxBytes: 4_000 } });
  const large = () => thing({ payload: new Uint8Array(1_500) });
  const outcomes = [
    ...(await bus.publish([large()])),
    ...(await bus.publish([large()])),
    ...(await bus.publish([large()])),
  ];
  expect(outcomes).toMatchObject([
    done,
    done,
    { kind: "release", why: expect.stringContaining("maximum bytes exceeded") },
  ]);
  const heard = await listen(bus);
  await until("the two are heard", () => heard.length === 2);
});

test("a stream deleted under a running service is made again, and publisher and consumer go on", async () => {
  await using stage = await setStage(server);
  const said: string[] = [];
  const bus = await stage.open({ log: (message) => said.push(message) });
  const heard = await listen(bus);
  await bus.publish([thing()]);
  await until("it runs", () => heard.length === 1);
  await stage.manager.streams.delete(stage.stream);
  const event = thing();
  await until("it is stored", async () => (await bus.publish([event]))[0]?.kind === "done");
  await until("it is heard", () => heard.some(({ eventId }) => eventId === event.eventId));
  expect(said).toContainEqual(expect.stringMatching(toldByServer));
});

test("a consumer deleted under a running service is made again, and misses nothing", async () => {
  await using stage = await setStage(server);
  const said: string[] = [];
  const bus = await stage.open({ log: (message) => said.push(message) });
  const heard = await listen(bus);
  const info = () => stage.manager.consumers.info(stage.stream, "listener=events");
  await until("it waits for events", async () => (await info()).num_waiting === 1);
  await stage.manager.consumers.delete(stage.stream, "listener=events");
  const event = thing();
  await bus.publish([event]);
  await until("it is heard", () => heard.some(({ eventId }) => eventId === event.eventId));
  expect(said).toContainEqual(expect.stringMatching(toldByServer));
});
