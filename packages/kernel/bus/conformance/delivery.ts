/** Who gets what, and how often. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import type { BusUnderTest } from "./index.ts";
import { ids, listen, setStage, sorted, store, storeInOrder, thing, things } from "./stage.ts";

export function deliveryConforms(bus: BusUnderTest): void {
  const { name, test, promises } = bus;

  test(`${name}: an event is stored before publish answers: its publisher may crash at that moment`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const publisher = await stage.open();
    const event = thing();
    await store(publisher, [event]);
    await bus.crash(publisher);
    const ear = await listen(await stage.open());
    await until("the event arrives", () => ear.timesHeard(event) === 1);
  });

  test(`${name}: publishing nothing is answered with nothing`, async () => {
    await using stage = setStage(bus);
    assert.deepEqual(await (await stage.open()).publish([]), []);
  });

  test(`${name}: check names the engine`, async () => {
    await using stage = setStage(bus);
    assert.notEqual((await (await stage.open()).check()).engine, "");
  });

  if (promises.dedupes) {
    test(`${name}: an event published twice is delivered once`, async () => {
      const { heard, twice, last } = await publishTwice(bus);
      assert.deepEqual(heard, [twice, last]);
    });
  } else {
    test(`${name}: does not tell duplicates: an event published twice is delivered twice, and the inbox must tell`, async () => {
      const { heard, twice, last } = await publishTwice(bus);
      assert.deepEqual(heard, [twice, twice, last]);
    });
  }

  test(`${name}: two consumers each get every event`, async () => {
    await using stage = setStage(bus);
    const process = await stage.open();
    const one = await listen(process, { consumer: "one" });
    const other = await listen(process, { consumer: "other" });
    const events = things(30);
    await store(process, events);
    await until("both have all", () => one.heard.length >= 30 && other.heard.length >= 30);
    assert.deepEqual(sorted(ids(one.heard)), sorted(ids(events)));
    assert.deepEqual(sorted(ids(other.heard)), sorted(ids(events)));
  });

  test(`${name}: a consumer gets what was published while it was away`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const process = await stage.open();
    const events = things(30);
    await store(process, events);
    const ear = await listen(process);
    await until("it has caught up", () => ear.heard.length >= 30);
    assert.deepEqual(sorted(ids(ear.heard)), sorted(ids(events)));
  });

  if (promises.replaysToNewConsumers) {
    test(`${name}: a consumer that never subscribed before gets what was published before it came`, async () => {
      await using stage = setStage(bus);
      const process = await stage.open();
      const events = things(30);
      await store(process, events);
      const ear = await listen(process, { consumer: "newcomer" });
      await until("the newcomer has the old events", () => ear.heard.length >= 30);
      assert.deepEqual(sorted(ids(ear.heard)), sorted(ids(events)));
    });
  } else {
    test(`${name}: does not replay to newcomers: an event that nobody is known to want is not answered "done"`, async () => {
      await using stage = setStage(bus);
      const [outcome] = await (await stage.open()).publish([thing()]);
      assert.equal(outcome?.kind, "release");
    });
  }

  test(`${name}: processes under one consumer name share its events, each going to one of them`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    // Neither answers before both have some: a quick one could take them all before the other has woken up.
    const busy = stage.gate();
    const slowly = { batchMax: 2, answer: () => busy.opened.then(() => done) };
    const first = await listen(await stage.open(), slowly);
    const second = await listen(await stage.open(), slowly);
    const events = things(60);
    await store(await stage.open(), events);
    await until("both have some", () => first.heard.length > 0 && second.heard.length > 0);
    busy.open();
    await until("all have been delivered", () => first.heard.length + second.heard.length >= 60);
    assert.deepEqual(sorted(ids([...first.heard, ...second.heard])), sorted(ids(events)));
  });

  test(`${name}: an event reaches those who asked for its subject, and nobody else`, async () => {
    await using stage = setStage(bus);
    const subjects = Array.from({ length: 12 }, (_, n) => `service-${n % 4}.topic_${n}.events`);
    // Two of the three subjects of one service, and one of another's.
    const mine = [0, 4, 5].map((n) => subjects[n] ?? "");
    const process = await stage.open();
    const all = await listen(process, { consumer: "all", subjects });
    const some = await listen(process, { consumer: "some", subjects: mine });
    const events = things(120, (n) => ({ subject: subjects[n % 12] ?? "" }));
    await store(process, events);
    const wanted = events.filter(({ subject }) => mine.includes(subject));
    await until("all are heard", () => all.heard.length >= 120 && some.heard.length >= wanted.length);
    assert.deepEqual(sorted(ids(all.heard)), sorted(ids(events)));
    assert.deepEqual(sorted(ids(some.heard)), sorted(ids(wanted)));
  });
}

/** The last event is of the same aggregate: when it has come, every copy of the first has come. */
async function publishTwice(bus: BusUnderTest) {
  await using stage = setStage(bus);
  await stage.introduce();
  const process = await stage.open();
  const [twice, last] = [thing({ aggregateKey: "one" }), thing({ aggregateKey: "one" })];
  await storeInOrder(process, [twice, twice, last]);
  const ear = await listen(process);
  await until("the last event arrives", () => ear.timesHeard(last) === 1);
  return { heard: ids(ear.heard), twice: twice.eventId, last: last.eventId };
}
