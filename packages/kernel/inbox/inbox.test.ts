import { expect, test } from "vitest";
import type { Delivery } from "../bus/index.ts";
import { transaction } from "../db/index.ts";
import { fixedId } from "../testing/index.ts";
import { delayOf, delivery, insertEffects, kinds, never, readEffects, redelivery, refused, setup } from "./testing.ts";

test("an event takes effect once per consumer, however often it is delivered", async () => {
  await using t = await setup();
  const [a, b] = [delivery("a"), delivery("b")];
  const one = t.inboxFor("one");
  expect(kinds(await one.handle([a, a, b], never))).toEqual(["done", "done", "done"]);
  expect(kinds(await one.handle([redelivery(a), b], never))).toEqual(["done", "done"]);
  await Promise.all([one.handle([a], never), t.inboxFor("one", { db: t.open() }).handle([redelivery(a)], never)]);
  expect(await readEffects(t.db)).toEqual(["a", "b"]);
  await t.inboxFor("two").handle([a], never);
  expect(await readEffects(t.db)).toEqual(["a", "b", "a"]);
});

test("an event that one consumer has processed takes effect for another", async () => {
  await using t = await setup();
  const a = delivery("a");
  for (const consumer of ["one", "two"])
    expect(kinds(await t.inboxFor(consumer).handle([redelivery(a)], never))).toEqual(["done"]);
  expect(await readEffects(t.db)).toEqual(["a", "a"]);
});

test("a bad event in a batch fails alone", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const outcomes = await handle(
    ["a", "broken", "b", "refused", "garbled", "c"].map((name) => delivery(name)),
    never,
  );
  expect(kinds(outcomes)).toEqual(["done", "retry", "done", "dead", "dead", "done"]);
  expect(await readEffects(t.db)).toEqual(["a", "b", "c"]);
});

test("events of one aggregate take effect in order, also behind a redelivered one", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const of = (name: string, more: Partial<Delivery> = {}) => delivery(name, { aggregateKey: "k", ...more });
  await handle([of("a1", { redelivered: true }), of("a2"), delivery("b1"), of("a3")], never);
  expect((await readEffects(t.db)).filter((name) => name.startsWith("a"))).toEqual(["a1", "a2", "a3"]);
  const outcomes = await handle([of("broken"), of("a5"), delivery("b2")], never);
  expect(kinds(outcomes)).toEqual(["retry", "release", "done"]);
  expect(delayOf(outcomes[1])).toBe(delayOf(outcomes[0]));
});

test("a released event blocks the later events of its aggregate, and no others", async () => {
  await using t = await setup();
  let isDown = true;
  const { handle } = t.inboxFor("one", {
    async effect(tx, names) {
      if (isDown && names.includes("a1"))
        throw Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" });
      await insertEffects(tx, "one", names);
    },
  });
  const batch = [delivery("a1", { aggregateKey: "a" }), delivery("a2", { aggregateKey: "a" }), delivery("b1")];
  const outcomes = await handle(batch, never);
  expect(kinds(outcomes)).toEqual(["release", "release", "done"]);
  expect(delayOf(outcomes[1])).toBe(delayOf(outcomes[0]));
  expect(await readEffects(t.db)).toEqual(["b1"]);
  isDown = false;
  expect(kinds(await handle(batch.slice(0, 2).map(redelivery), never))).toEqual(["done", "done"]);
  expect(await readEffects(t.db)).toEqual(["b1", "a1", "a2"]);
});

test("an event whose UUID is in capitals takes effect once", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const event = delivery("a", { eventId: "0192ABCD-0000-7000-8000-0000000000AB" });
  for (const each of [event, redelivery(event), { ...event, eventId: event.eventId.toLowerCase() }])
    expect(kinds(await handle([each], never))).toEqual(["done"]);
  expect(await readEffects(t.db)).toEqual(["a"]);
});

test("an event appended by the effect commits with the mark, or neither does", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one", {
    effect: async (tx) => {
      await tx.query(
        `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
                      values ($1, 'T', 's', 'k', 1, '{}')`,
        [fixedId(900_000)],
      );
      throw refused("no");
    },
  });
  await handle([delivery("a")], never);
  expect((await t.db.query(`select from outbox_events`)).rowCount).toBe(0);
  await transaction(t.db, (tx) => tx.query(`select 1`));
});
