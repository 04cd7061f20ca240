import { expect, test } from "vitest";
import type { Envelope } from "../bus/index.ts";
import { CommitUnknown, type Db, type Tx } from "../db/index.ts";
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
  setup,
} from "./testing.ts";

/** The only dead letter of a consumer, in full. */
async function showOnly(db: Db, consumer: string) {
  const [dead, ...others] = await listDead(db, consumer);
  expect(others).toEqual([]);
  return await inboxDeadLetters(consumer).show(db, dead?.id ?? "0");
}

test("an event that can never succeed is dead-lettered at once with its payload", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const garbled = delivery("garbled", { payload: new Uint8Array([0, 255, 1]), aggregateKey: "ü/1" });
  const unreadable = t.inboxFor("two", {
    decode: () => {
      throw new Error("not a thing");
    },
  });
  await handle([delivery("refused")], never);
  expect(kinds(await unreadable.handle([garbled, { ...garbled }, redelivery(garbled)], never))).toEqual([
    "dead",
    "done",
    "done",
  ]);
  expect(await readLastErrors(t.db, "one")).toEqual(["Problem: never"]);
  expect(await showOnly(t.db, "two")).toMatchObject({
    event_id: garbled.eventId,
    subject: "thing.events",
    about: "ü/1",
    headers: { tenant: "t1" },
    payload_base64: Buffer.from(garbled.payload).toString("base64"),
  });
  expect(await readLastErrors(t.db, "two")).toEqual(["Unreadable: cannot be read: Error: not a thing"]);
  expect(await readEffects(t.db)).toEqual([]);
});

test("the dead-letter callback commits with the dead letter, or neither does", async () => {
  await using t = await setup();
  let isBroken = true;
  const onDead = async (tx: Tx, { eventId }: Envelope, reason: string) => {
    await insertEffects(tx, "one", [`${eventId} ${reason}`]);
    if (isBroken) throw new Error("not yet");
  };
  const { handle } = t.inboxFor("one", { onDeadLetter: onDead });
  const garbled = delivery("garbled");
  expect(kinds(await handle([garbled], never))).toEqual(["retry"]);
  expect(await readEffects(t.db)).toEqual([]);
  expect(await listDead(t.db, "one")).toEqual([]);
  isBroken = false;
  for (const expected of ["dead", "done"])
    expect(kinds(await handle([redelivery(garbled)], never))).toEqual([expected]);
  expect(await readEffects(t.db)).toEqual([`${garbled.eventId} Unreadable: cannot be read: Error: not a thing`]);
});

test("the callback takes effect once if two processes dead-letter one event", async () => {
  await using t = await setup();
  const go = Promise.withResolvers<void>();
  let begun = 0;
  const onDead = async (tx: Tx, { eventId }: Envelope) => {
    begun++;
    await insertEffects(tx, "one", [eventId]);
    await go.promise;
  };
  const garbled = delivery("garbled");
  const first = t.inboxFor("one", { onDeadLetter: onDead }).handle([garbled], never);
  await until("the first is about to commit", () => begun === 1);
  const second = t.inboxFor("one", { onDeadLetter: onDead, db: t.open() }).handle([redelivery(garbled)], never);
  await until("the second waits for the first", async () => {
    const text = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return (await t.db.query(text)).rowCount === 1;
  });
  go.resolve();
  expect([...kinds(await first), ...kinds(await second)]).toEqual(["dead", "dead"]);
  expect(await readEffects(t.db)).toEqual([garbled.eventId]);
});

test("an event whose callback always fails is dead-lettered without it", async () => {
  await using t = await setup();
  const onDead = async (tx: Tx) => void (await tx.query(`insert into effects (name) values ($1::uuid::text)`, ["no"]));
  const { handle } = t.inboxFor("one", { onDeadLetter: onDead, attemptsMax: 2 });
  const broken = delivery("broken");
  const seen: string[] = [];
  for (let i = 0; i < 5; i++) seen.push(...kinds(await handle([redelivery(broken)], never)));
  // Two attempts of the effect, then two of the callback.
  expect(seen).toEqual(["retry", "retry", "retry", "dead", "done"]);
  expect(await readLastErrors(t.db, "one")).toEqual([
    expect.stringMatching(
      /^failed after 2 attempts: Error: not today; the dead-letter callback failed and was skipped: .*invalid input syntax/,
    ),
  ]);
  expect((await t.db.query(`select from inbox_attempts`)).rowCount).toBe(0);
});

test("each consumer keeps its own reason for an event that could not be dead-lettered", async () => {
  await using t = await setup();
  const broken = delivery("broken");
  // The only attempt of consumer two ended in a crash.
  const crashed = `insert into inbox_attempts (consumer, event_id, attempt_count) values ('two', $1, 1)`;
  await t.db.query(crashed, [broken.eventId]);
  const onDead = async () => {
    throw new Error("not yet");
  };
  const one = t.inboxFor("one", { onDeadLetter: onDead, attemptsMax: 1 });
  expect(kinds(await one.handle([redelivery(broken)], never))).toEqual(["retry"]);
  expect(kinds(await t.inboxFor("two", { attemptsMax: 1 }).handle([redelivery(broken)], never))).toEqual(["dead"]);
  expect(await readLastErrors(t.db, "two")).toEqual([expect.stringMatching(/^failed after 1 attempts: .*crash/)]);
});

test("the callback is not skipped because the database is unavailable", async () => {
  await using t = await setup();
  let isDown = true;
  const onDead = async (tx: Tx) => {
    if (isDown) throw Object.assign(new Error("shutting down"), { code: "57P01", severity: "FATAL" });
    await insertEffects(tx, "one", ["callback"]);
  };
  const { handle } = t.inboxFor("one", { onDeadLetter: onDead, attemptsMax: 1 });
  const garbled = delivery("garbled");
  for (let i = 0; i < 4; i++) expect(kinds(await handle([redelivery(garbled)], never))).toEqual(["release"]);
  isDown = false;
  expect(kinds(await handle([redelivery(garbled)], never))).toEqual(["dead"]);
  expect(await readEffects(t.db)).toEqual(["callback"]);
});

test("an event whose dead letter may have committed is released", async () => {
  await using t = await setup();
  const onDead = async () => {
    throw new CommitUnknown(new Error("the connection was lost"));
  };
  const { handle } = t.inboxFor("one", { onDeadLetter: onDead });
  expect(kinds(await handle([delivery("garbled")], never))).toEqual(["release"]);
});

test("an event whose ID is not a UUID is dead-lettered once and can be redriven", async () => {
  await using t = await setup();
  const inbox = t.inboxFor("one", {
    onDeadLetter: async (tx, { eventId }) => void (await tx.query(`select $1::uuid`, [eventId])),
  });
  const foreign = delivery("a", { eventId: "THINGS/7\0" });
  const outcomes = await inbox.handle([delivery("b"), foreign, delivery("c")], never);
  expect(kinds(outcomes)).toEqual(["done", "dead", "done"]);
  expect(kinds(await inbox.handle([foreign, redelivery(foreign)], never))).toEqual(["done", "done"]);
  const dead = await showOnly(t.db, "one");
  expect(dead?.headers).toEqual({ tenant: "t1", original_event_id: "THINGS/7\uFFFD" });
  expect(await readLastErrors(t.db, "one")).toEqual(["Unreadable: its id is not a UUID: THINGS/7\uFFFD"]);
  expect(await readEffects(t.db)).toEqual(["b", "c"]);
  await redriveDead(t.db, "one");
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await readEffects(t.db)).toEqual(["b", "c", "a"]);
});

test("text that PostgreSQL cannot store is replaced in a dead letter", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const texts = { eventType: "T\0", subject: "s\0", aggregateKey: "k\0\uD800", occurredAt: "o\0" };
  const garbled = delivery("garbled", { ...texts, headers: { "n\0": "v\0\uDFFF", kept: "ü" } });
  expect(kinds(await handle([garbled], never))).toEqual(["dead"]);
  expect(await showOnly(t.db, "one")).toMatchObject({
    event_id: garbled.eventId,
    event_type: "T\uFFFD",
    subject: "s\uFFFD",
    about: "k\uFFFD\uFFFD",
    occurred_at: "o\uFFFD",
    headers: { "n\uFFFD": "v\uFFFD\uFFFD", kept: "ü" },
    payload_base64: Buffer.from("garbled").toString("base64"),
  });
});
