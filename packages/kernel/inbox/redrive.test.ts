import { expect, test } from "vitest";
import { type Tx, transaction } from "../db/index.ts";
import { until } from "../testing/index.ts";
import { inboxDeadLetters } from "./index.ts";
import {
  delivery,
  insertEffects,
  kinds,
  listDead,
  never,
  readEffects,
  readLastErrors,
  redelivery,
  redriveDead,
  refused,
  setup,
} from "./testing.ts";

test("a redelivery that fails after the mark was deleted reopens the resolved dead letter", async () => {
  await using t = await setup();
  let isFixed = true;
  const effect = async () => {
    if (!isFixed) throw refused("no more");
  };
  const inbox = t.inboxFor("one", { effect });
  isFixed = false;
  const event = delivery("a");
  await inbox.handle([event], never);
  const [id] = await redriveDead(t.db, "one");
  isFixed = true;
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  await t.db.query(`delete from processed_events`); // As retention does, before it deletes the dead letter.
  isFixed = false;
  const changed = { ...redelivery(event), payload: new TextEncoder().encode("b") };
  expect(kinds(await inbox.handle([changed], never))).toEqual(["dead"]);
  expect(await listDead(t.db, "one")).toMatchObject([{ id, attempt_count: 0 }]);
  expect((await t.db.query(`select payload from inbox_dlq`)).rows).toEqual([{ payload: Buffer.from("b") }]);
  expect(await readLastErrors(t.db, "one")).toEqual(["Problem: no more"]);
  // A dead letter that waits for its redrive is not reopened.
  await redriveDead(t.db, "one");
  await t.db.query(`delete from processed_events`);
  await inbox.handle([redelivery(event)], never);
  expect((await t.db.query(`select status from inbox_dlq`)).rows).toEqual([{ status: "PENDING" }]);
});

test("a redriven event takes effect once, however often it is redriven or delivered", async () => {
  await using t = await setup();
  let isFixed = false;
  const effect = async (tx: Tx, names: readonly string[]) => {
    if (!isFixed) throw refused("not yet");
    await insertEffects(tx, "one", names);
  };
  const inbox = t.inboxFor("one", { effect });
  const event = delivery("a");
  await inbox.handle([event], never);
  isFixed = true;
  const redriven = await Promise.all([redriveDead(t.db, "one"), redriveDead(t.open(), "one")]);
  expect(redriven.flat()).toHaveLength(1);
  await Promise.all([
    inbox.redriver.runOnce(),
    t.inboxFor("one", { effect }).redriver.runOnce(),
    inbox.handle([redelivery(event)], never),
  ]);
  expect(await readEffects(t.db)).toEqual(["a"]);
  // As after a crash between the commit of the effect and the settlement: the row is claimed again.
  await t.db.query(`update inbox_dlq set status = 'PENDING', resolved_at = null, next_retry_at = now()`);
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await readEffects(t.db)).toEqual(["a"]);
  expect(await listDead(t.db, "one")).toEqual([]);
  expect(await inboxDeadLetters("one").redrive(t.db, redriven.flat(), { by: "aki", reason: "again" })).toEqual([]);
});

test("slow redrives leave half of the pool to others", async () => {
  await using t = await setup();
  const events = Array.from({ length: 6 }, () => delivery("refused"));
  await t.inboxFor("one").handle(events, never);
  await redriveDead(t.db, "one");
  const db = t.open({ poolMax: 4 });
  const go = Promise.withResolvers<void>();
  let running = 0;
  const effect = () => {
    running++;
    return go.promise;
  };
  const { redriver } = t.inboxFor("one", { db, effect });
  const summary = redriver.runOnce();
  try {
    await until("they hold connections", () => running >= 2);
    expect(running).toBe(2);
    await transaction(db, () => db.query(`select 1`)); // Two more are free.
  } finally {
    go.resolve();
  }
  expect(await summary).toMatchObject({ claimed: 2, done: 2 });
});

test("a redrive of one consumer does not affect another", async () => {
  await using t = await setup();
  const event = delivery("a");
  for (const consumer of ["one", "two"]) {
    const effect = async () => {
      throw refused("not yet");
    };
    await t.inboxFor(consumer, { effect }).handle([event], never);
  }
  for (const [index, consumer] of ["one", "two"].entries()) {
    await redriveDead(t.db, consumer);
    expect(await t.inboxFor(consumer).redriver.runOnce()).toMatchObject({ done: 1 });
    expect((await readEffects(t.db)).length).toBe(index + 1);
  }
});

test("a redriven event that fails again is dead with the new reason", async () => {
  await using t = await setup();
  const inbox = t.inboxFor("one");
  await inbox.handle([delivery("refused")], never);
  await redriveDead(t.db, "one");
  expect(await inbox.redriver.runOnce()).toMatchObject({ dead: 1 });
  expect(await readLastErrors(t.db, "one")).toEqual(["refused: never"]);
});
