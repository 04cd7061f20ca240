import { expect, test } from "vitest";
import type { Delivery, Envelope } from "../bus/index.ts";
import { type Db, type Tx, transaction } from "../db/index.ts";
import { problem } from "../problem/index.ts";
import { fixedId, openWire, testDatabase, until } from "../testing/index.ts";
import { deadEvents, type InboxOptions, openInbox, redriveDead } from "./index.ts";

let ids = 1;
const delivery = (name: string, more: Partial<Delivery> = {}): Delivery => ({
  eventId: fixedId(ids++),
  eventType: "ThingHappened",
  subject: "thing.events",
  aggregateKey: name,
  occurredAt: "2026-01-08T07:10:00Z",
  headers: { tenant: "t1" },
  payload: new TextEncoder().encode(name),
  redelivered: false,
  ...more,
});
const again = (d: Delivery): Delivery => ({ ...d, redelivered: true });
const never = new AbortController().signal;
const read = (event: Envelope) => {
  const name = new TextDecoder().decode(event.payload);
  if (name === "garbled") throw new Error("not a thing");
  return name;
};
const asked = { by: "aki", reason: "mended" };
const refused = problem({ code: "refused", status: 422, title: "Refused" });

async function setup() {
  const t = await testDatabase();
  await t.db.query(`create table effects (id int generated always as identity, consumer text, name text)`);
  const inboxFor = (consumer: string, more: Partial<InboxOptions<string>> = {}) =>
    openInbox<string>({
      db: t.db,
      consumer,
      read,
      effect: (tx, names) => insert(tx, consumer, names),
      backoff: { baseMs: 1, capMs: 1 },
      ...more,
    });
  return Object.assign(t, { inboxFor });
}

async function insert(tx: Tx, consumer: string, names: readonly string[]) {
  for (const name of names) {
    await tx.query(`insert into effects (consumer, name) values ($1, $2)`, [consumer, name]);
    if (name === "refused") throw refused("never");
    if (name === "broken") throw new Error("not today");
  }
}

const effects = async (db: Db) =>
  (await db.query<{ name: string }>(`select name from effects order by id`)).rows.map((row) => row.name);
const kinds = (outcomes: readonly { kind: string }[]) => outcomes.map((outcome) => outcome.kind);

test("an event takes effect once per consumer, however often it arrives", async () => {
  await using t = await setup();
  const [a, b] = [delivery("a"), delivery("b")];
  const one = t.inboxFor("one");
  expect(kinds(await one.handle([a, a, b], never))).toEqual(["done", "done", "done"]);
  expect(kinds(await one.handle([again(a), b], never))).toEqual(["done", "done"]);
  await Promise.all([one.handle([a], never), t.inboxFor("one", { db: t.open() }).handle([again(a)], never)]);
  expect(await effects(t.db)).toEqual(["a", "b"]);
  await t.inboxFor("two").handle([a], never);
  expect(await effects(t.db)).toEqual(["a", "b", "a"]);
});

test("an event that one consumer has processed still takes effect for another that gets it again", async () => {
  await using t = await setup();
  const a = delivery("a");
  for (const consumer of ["one", "two"])
    expect(kinds(await t.inboxFor(consumer).handle([again(a)], never))).toEqual(["done"]);
  expect(await effects(t.db)).toEqual(["a", "a"]);
});

test("attempts are counted by consumer, and until the event takes effect", async () => {
  await using t = await setup();
  const a = delivery("a");
  const attempts = async () => (await t.db.query(`select consumer, attempt_count as count from inbox_attempts`)).rows;
  const failing = async () => {
    throw new Error("not today");
  };
  for (const consumer of ["one", "two"]) await t.inboxFor(consumer, { effect: failing }).handle([again(a)], never);
  const away = async () => {
    throw Object.assign(new Error("not there"), { code: "ECONNREFUSED" });
  };
  await t.inboxFor("one", { effect: away }).handle([again(a)], never);
  expect(await attempts()).toEqual(expect.arrayContaining(["one", "two"].map((consumer) => ({ consumer, count: 1 }))));
  await t.inboxFor("one").handle([again(a)], never);
  expect(await attempts()).toEqual([{ consumer: "two", count: 1 }]);
  await t.inboxFor("two").handle([again(a)], never);
  expect(await attempts()).toEqual([]);
});

test("one bad event in a batch fails alone, and the others take effect in their order", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const outcomes = await handle(
    ["a", "broken", "b", "refused", "garbled", "c"].map((name) => delivery(name)),
    never,
  );
  expect(kinds(outcomes)).toEqual(["done", "retry", "done", "dead", "dead", "done"]);
  expect(await effects(t.db)).toEqual(["a", "b", "c"]);
});

test("events of one aggregate take effect in their order, also when an early one is tried again beside later ones", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const of = (name: string, more: Partial<Delivery> = {}) => delivery(name, { aggregateKey: "k", ...more });
  await handle([of("a1", { redelivered: true }), of("a2"), delivery("b1"), of("a3")], never);
  expect((await effects(t.db)).filter((name) => name.startsWith("a"))).toEqual(["a1", "a2", "a3"]);
  const outcomes = await handle([of("broken"), of("a5"), delivery("b2")], never);
  expect(kinds(outcomes)).toEqual(["retry", "release", "done"]);
  expect(outcomes[1]).toMatchObject({ inMs: (outcomes[0] as { inMs: number }).inMs });
});

test("an event that is released holds back the later events of its aggregate, and no others", async () => {
  await using t = await setup();
  let isAway = true;
  const { handle } = t.inboxFor("one", {
    async effect(tx, names) {
      if (isAway && names.includes("a1")) throw Object.assign(new Error("not there"), { code: "ECONNREFUSED" });
      await insert(tx, "one", names);
    },
  });
  const batch = [delivery("a1", { aggregateKey: "a" }), delivery("a2", { aggregateKey: "a" }), delivery("b1")];
  const outcomes = await handle(batch, never);
  expect(kinds(outcomes)).toEqual(["release", "release", "done"]);
  expect(outcomes[1]).toMatchObject({ inMs: (outcomes[0] as { inMs: number }).inMs });
  expect(await effects(t.db)).toEqual(["b1"]);
  isAway = false;
  expect(kinds(await handle(batch.slice(0, 2).map(again), never))).toEqual(["done", "done"]);
  expect(await effects(t.db)).toEqual(["b1", "a1", "a2"]);
});

test("what can never succeed goes to the DLQ at once: whole, with its reason, and without effect", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const garbled = delivery("garbled", { payload: new Uint8Array([0, 255, 1]), aggregateKey: "ü/1" });
  const unreadable = t.inboxFor("two", {
    read: () => {
      throw new Error("not a thing");
    },
  });
  await handle([delivery("refused")], never);
  expect(kinds(await unreadable.handle([garbled, { ...garbled }, again(garbled)], never))).toEqual([
    "dead",
    "done",
    "done",
  ]);
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([{ why: "Problem: never" }]);
  const [dead] = await deadEvents(t.db, { consumer: "two" });
  expect(dead).toMatchObject({
    eventId: garbled.eventId,
    subject: "thing.events",
    aggregateKey: "ü/1",
    headers: { tenant: "t1" },
  });
  expect(dead?.why).toBe("Unreadable: cannot be read: Error: not a thing");
  expect([...(dead?.payload ?? [])]).toEqual([0, 255, 1]);
  expect(await effects(t.db)).toEqual([]);
});

test("a failing event is tried again with backoff, and given up at the limit", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one", { attemptsMax: 3 });
  const broken = delivery("broken");
  const seen: string[] = [];
  for (let i = 0; i < 4; i++) seen.push(...kinds(await handle([i === 0 ? broken : again(broken)], never)));
  expect(seen).toEqual(["retry", "retry", "dead", "done"]); // the last is the answer to one that is buried already
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([
    { why: "gave up after 3 attempts: Error: not today" },
  ]);
});

test("whenDead commits with the dead letter, once, or neither does", async () => {
  await using t = await setup();
  let isBroken = true;
  const whenDead = async (tx: Tx, { eventId }: Envelope, why: string) => {
    await insert(tx, "one", [`${eventId} ${why}`]);
    if (isBroken) throw new Error("not yet");
  };
  const { handle } = t.inboxFor("one", { whenDead });
  const garbled = delivery("garbled");
  expect(kinds(await handle([garbled], never))).toEqual(["retry"]);
  expect(await effects(t.db)).toEqual([]);
  expect(await deadEvents(t.db, { consumer: "one" })).toEqual([]);
  isBroken = false;
  for (const expected of ["dead", "done"]) expect(kinds(await handle([again(garbled)], never))).toEqual([expected]);
  expect(await effects(t.db)).toEqual([`${garbled.eventId} Unreadable: cannot be read: Error: not a thing`]);
});

test("whenDead follows once when two processes dead-letter the same event at the same time", async () => {
  await using t = await setup();
  const go = Promise.withResolvers<void>();
  let begun = 0;
  const whenDead = async (tx: Tx, { eventId }: Envelope) => {
    begun++;
    await insert(tx, "one", [eventId]);
    await go.promise;
  };
  const garbled = delivery("garbled");
  const first = t.inboxFor("one", { whenDead }).handle([garbled], never);
  await until("the first is about to commit", () => begun === 1);
  const second = t.inboxFor("one", { whenDead, db: t.open() }).handle([again(garbled)], never);
  await until("the second waits for the first", async () => {
    const text = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return (await t.db.query(text)).rowCount === 1;
  });
  go.resolve();
  expect([...kinds(await first), ...kinds(await second)]).toEqual(["dead", "dead"]);
  expect(await effects(t.db)).toEqual([garbled.eventId]);
});

test("an event whose whenDead always fails is dead-lettered without it, with both reasons", async () => {
  await using t = await setup();
  const whenDead = async (tx: Tx) =>
    void (await tx.query(`insert into effects (name) values ($1::uuid::text)`, ["no"]));
  const { handle } = t.inboxFor("one", { whenDead, attemptsMax: 2 });
  const broken = delivery("broken");
  const seen: string[] = [];
  for (let i = 0; i < 5; i++) seen.push(...kinds(await handle([again(broken)], never)));
  // Two attempts of the effect; then as many of whenDead as the effect had.
  expect(seen).toEqual(["retry", "retry", "retry", "dead", "done"]);
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([
    {
      why: expect.stringMatching(
        /^gave up after 2 attempts: Error: not today; whenDead failed and was left out: .*invalid input syntax/,
      ),
    },
  ]);
  expect((await t.db.query(`select from inbox_attempts`)).rowCount).toBe(0);
});

test("a database that is unavailable to whenDead is no reason to leave it out", async () => {
  await using t = await setup();
  let isAway = true;
  const whenDead = async (tx: Tx) => {
    if (isAway) throw Object.assign(new Error("shutting down"), { code: "57P01", severity: "FATAL" });
    await insert(tx, "one", ["followed"]);
  };
  const { handle } = t.inboxFor("one", { whenDead, attemptsMax: 1 });
  const garbled = delivery("garbled");
  for (let i = 0; i < 4; i++) expect(kinds(await handle([again(garbled)], never))).toEqual(["release"]);
  isAway = false;
  expect(kinds(await handle([again(garbled)], never))).toEqual(["dead"]);
  expect(await effects(t.db)).toEqual(["followed"]);
});

test("an event whose id is not a UUID is dead-lettered once, and takes effect when redriven", async () => {
  await using t = await setup();
  const inbox = t.inboxFor("one", {
    whenDead: async (tx, { eventId }) => void (await tx.query(`select $1::uuid`, [eventId])),
  });
  const foreign = delivery("a", { eventId: "THINGS/7\0" });
  const outcomes = await inbox.handle([delivery("b"), foreign, delivery("c")], never);
  expect(kinds(outcomes)).toEqual(["done", "dead", "done"]);
  expect(kinds(await inbox.handle([foreign, again(foreign)], never))).toEqual(["done", "done"]);
  const [dead, ...others] = await deadEvents(t.db, { consumer: "one" });
  expect(others).toEqual([]);
  expect(dead).toMatchObject({
    headers: { tenant: "t1", original_event_id: "THINGS/7\uFFFD" },
    why: "Unreadable: its id is not a UUID: THINGS/7\uFFFD",
  });
  expect(await effects(t.db)).toEqual(["b", "c"]);
  await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await effects(t.db)).toEqual(["b", "c", "a"]);
});

test("an event whose id is a UUID in capitals takes effect, once however it is written", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const event = delivery("a", { eventId: "0192ABCD-0000-7000-8000-0000000000AB" });
  for (const each of [event, again(event), { ...event, eventId: event.eventId.toLowerCase() }])
    expect(kinds(await handle([each], never))).toEqual(["done"]);
  expect(await effects(t.db)).toEqual(["a"]);
});

test("an event with text that PostgreSQL cannot store is dead-lettered, with that text replaced", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one");
  const texts = { eventType: "T\0", subject: "s\0", aggregateKey: "k\0\uD800", occurredAt: "o\0" };
  const garbled = delivery("garbled", { ...texts, headers: { "n\0": "v\0\uDFFF", kept: "ü" } });
  expect(kinds(await handle([garbled], never))).toEqual(["dead"]);
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([
    {
      eventId: garbled.eventId,
      eventType: "T\uFFFD",
      subject: "s\uFFFD",
      aggregateKey: "k\uFFFD\uFFFD",
      occurredAt: "o\uFFFD",
      headers: { "n\uFFFD": "v\uFFFD\uFFFD", kept: "ü" },
      payload: Buffer.from("garbled"),
    },
  ]);
});

test("an event that comes again and fails after its dead letter was resolved and its mark removed is dead again", async () => {
  await using t = await setup();
  let isFixed = true;
  const effect = async () => {
    if (!isFixed) throw refused("no more");
  };
  const inbox = t.inboxFor("one", { effect });
  isFixed = false;
  const event = delivery("a");
  await inbox.handle([event], never);
  const [first] = await deadEvents(t.db, { consumer: "one" });
  await redriveDead(t.db, [first?.dlqId ?? 0n], asked);
  isFixed = true;
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  await t.db.query(`delete from processed_events`); // As retention does, long before the dead letter's own age is reached.
  isFixed = false;
  expect(kinds(await inbox.handle([again(event)], never))).toEqual(["dead"]);
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([{ dlqId: first?.dlqId, why: "Problem: no more" }]);
});

test("an event whose handler never lives to answer is given up at the limit", async () => {
  await using t = await setup();
  const deadly = delivery("deadly");
  const atTheEnd = Promise.withResolvers<void>();
  let begun = 0;
  const endless = () => {
    begun++;
    return atTheEnd.promise;
  };
  // Each try counts itself, and then its process is as good as gone: nothing of it is heard of any more.
  for (let i = 0; i < 3; i++) {
    const gone = t.inboxFor("one", { attemptsMax: 3, effect: endless });
    void gone.handle([again(deadly)], never);
    // In the middle of it: a statement that met the end of its connection would still say so.
    await until("it has begun", () => begun === i + 1);
    expect((await t.db.query(`select attempt_count from inbox_attempts`)).rows).toEqual([{ attempt_count: i + 1 }]);
    await until("its connection is ended", async () => {
      const killed = await t.db.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      );
      return killed.rowCount === 1;
    });
  }
  const { handle } = t.inboxFor("one", { attemptsMax: 3 });
  expect(kinds(await handle([again(deadly), delivery("fine")], never))).toEqual(["dead", "done"]);
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([
    { why: expect.stringMatching(/gave up after 3 attempts.*crash/) },
  ]);
  atTheEnd.reject(new Error("the test is over"));
});

test("a redriven event takes effect once, however often it is redriven or delivered meanwhile", async () => {
  await using t = await setup();
  let mended = false;
  const effect = async (tx: Tx, names: readonly string[]) => {
    if (!mended) throw refused("not yet");
    await insert(tx, "one", names);
  };
  const inbox = t.inboxFor("one", { effect });
  const event = delivery("a");
  await inbox.handle([event], never);
  mended = true;
  const [dead] = await deadEvents(t.db, { consumer: "one" });
  const id = dead?.dlqId ?? 0n;
  expect(await Promise.all([redriveDead(t.db, [id], asked), redriveDead(t.open(), [id], asked)])).toSatisfy(
    (all: string[][]) => all.flat().length === 1,
  );
  await Promise.all([
    inbox.redriver.runOnce(),
    t.inboxFor("one", { effect }).redriver.runOnce(),
    inbox.handle([again(event)], never),
  ]);
  expect(await effects(t.db)).toEqual(["a"]);
  // As after a crash between the effect's commit and the settlement: the row is worked once more.
  await t.db.query(`update inbox_dlq set status = 'PENDING', resolved_at = null, next_retry_at = now()`);
  expect(await inbox.redriver.runOnce()).toMatchObject({ done: 1 });
  expect(await effects(t.db)).toEqual(["a"]);
  expect(await deadEvents(t.db, { consumer: "one" })).toEqual([]);
  expect(await redriveDead(t.db, [id], asked)).toEqual([]);
});

test("redrives that take long leave half of the pool to others", async () => {
  await using t = await setup();
  const events = Array.from({ length: 6 }, () => delivery("refused"));
  await t.inboxFor("one").handle(events, never);
  const ids = (await deadEvents(t.db, { consumer: "one" })).map(({ dlqId }) => dlqId);
  await redriveDead(t.db, ids, asked);
  const db = t.open({ poolMax: 4 });
  const go = Promise.withResolvers<void>();
  let running = 0;
  const effect = () => {
    running++;
    return go.promise;
  };
  const { redriver } = t.inboxFor("one", { db, effect });
  const round = redriver.runOnce();
  try {
    await until("they hold connections", () => running >= 2);
    expect(running).toBe(2);
    await transaction(db, () => db.query(`select 1`)); // Two more are free.
  } finally {
    go.resolve();
  }
  expect(await round).toMatchObject({ claimed: 2, done: 2 });
});

test("an event that is dead for two consumers takes effect for the one that redrives it, and then for the other", async () => {
  await using t = await setup();
  const event = delivery("a");
  for (const consumer of ["one", "two"]) {
    const effect = async () => {
      throw refused("not yet");
    };
    await t.inboxFor(consumer, { effect }).handle([event], never);
  }
  for (const [place, consumer] of ["one", "two"].entries()) {
    const [dead] = await deadEvents(t.db, { consumer });
    await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
    expect(await t.inboxFor(consumer).redriver.runOnce()).toMatchObject({ done: 1 });
    expect((await effects(t.db)).length).toBe(place + 1);
  }
});

test("a redriven event that fails again is dead again, with the new reason", async () => {
  await using t = await setup();
  const inbox = t.inboxFor("one");
  await inbox.handle([delivery("refused")], never);
  const [dead] = await deadEvents(t.db, { consumer: "one" });
  await redriveDead(t.db, [dead?.dlqId ?? 0n], asked);
  expect(await inbox.redriver.runOnce()).toMatchObject({ dead: 1 });
  expect(await deadEvents(t.db, { consumer: "one" })).toMatchObject([{ why: "refused: never" }]);
});

test.each(["request", "answer"] as const)(
  "when the %s of COMMIT is lost the event comes again and takes effect exactly once",
  async (lost) => {
    await using t = await setup();
    await using wire = await openWire(t.url);
    const db = t.open({ url: wire.url });
    const { handle } = t.inboxFor("one", { db });
    await handle([delivery("warm-up")], never);
    wire.cutNext("commit", lost);
    const event = delivery("a");
    const [outcome] = await handle([event], never);
    // Either the batch's own second look has settled it, or the bus brings it again.
    if (outcome?.kind !== "done") expect(kinds(await handle([again(event)], never))).toEqual(["done"]);
    expect(await effects(t.db)).toEqual(["warm-up", "a"]);
  },
);

test("an attempt whose COMMIT is lost stays counted, so that an event that breaks every connection comes to an end", async () => {
  await using t = await setup();
  await using wire = await openWire(t.url);
  const { handle } = t.inboxFor("one", { db: t.open({ url: wire.url }) });
  await handle([delivery("warm-up")], never);
  wire.cutNext("commit", "request");
  expect(kinds(await handle([again(delivery("a"))], never))).toEqual(["release"]);
  expect((await t.db.query(`select attempt_count from inbox_attempts`)).rows).toEqual([{ attempt_count: 1 }]);
});

test("a database that is away is nothing against the event", async () => {
  await using t = await setup();
  await using wire = await openWire(t.url);
  const db = t.open({ url: wire.url });
  const { handle } = t.inboxFor("one", { db, attemptsMax: 1 });
  await wire[Symbol.asyncDispose]();
  expect(kinds(await handle([delivery("a")], never))).toEqual(["release"]);
});

test("what the effect needs beside the database may be away for however long: that is nothing against the event", async () => {
  await using t = await setup();
  let away = true;
  const inbox = t.inboxFor("one", {
    attemptsMax: 2,
    async effect(tx, names) {
      if (away) throw new Error("nobody there", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) });
      await insert(tx, "one", names);
    },
  });
  const a = delivery("a");
  for (let tries = 0; tries < 5; tries++) expect(kinds(await inbox.handle([again(a)], never))).toEqual(["release"]);
  away = false;
  expect(kinds(await inbox.handle([again(a)], never))).toEqual(["done"]);
  expect(await effects(t.db)).toEqual(["a"]);
});

test("an effect that emits commits its event with the mark, or neither", async () => {
  await using t = await setup();
  const { handle } = t.inboxFor("one", {
    effect: async (tx) => {
      await tx.query(
        `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
                      values ($1, 'T', 's', 'k', 1, '{}')`,
        [fixedId(900_000)],
      );
      throw refused("after all");
    },
  });
  await handle([delivery("a")], never);
  expect((await t.db.query(`select from outbox_events`)).rowCount).toBe(0);
  await transaction(t.db, (tx) => tx.query(`select 1`));
});
