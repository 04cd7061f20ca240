import { randomUUIDv7 } from "node:crypto";
import { BusUnavailable, type EventBus } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { deleteFinished } from "@todoke/kernel/retention";
import { longTimeouts, openFaultProxy, type TestDatabase, testDatabase, until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openPostgresBus, type PostgresBusOptions } from "./index.ts";
import { createBatchSize, joinSubjects } from "./join.ts";
import { busMigrations, busRetention, copyHistory, startJoin } from "./store.ts";

const subject = "thing.events";
const weekMs = 7 * 24 * 3_600_000;

const event = (aggregateKey: string, eventSubject = subject) => ({
  eventId: randomUUIDv7(),
  eventType: "T",
  subject: eventSubject,
  aggregateKey,
  occurredAt: "",
  headers: {},
  payload: new Uint8Array(),
});

async function openTest() {
  const t = await testDatabase({ schema: "bus", sets: [busMigrations], pools: longTimeouts });
  const stack = new AsyncDisposableStack();
  stack.use(t);
  // Tests run retention themselves.
  const keepMs = 100 * 365 * 24 * 3_600_000;
  const openBus = async (more: Partial<PostgresBusOptions> = {}) =>
    stack.use(await openPostgresBus({ url: t.url, schema: "bus", pollMs: 50, keepMs, ...more }));
  /** A session that ends with the test, so that it leaves no lock behind. */
  const connect = async () => {
    const client = await t.open().connect();
    stack.defer(async () => client.release(true));
    return client;
  };
  return { ...t, openBus, connect, bus: await openBus(), [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Messages of ten aggregates, published `age` ago, before any subscription. */
async function storeHistory(db: Db, count: number, age = "0 s"): Promise<void> {
  await db.query(
    `insert into bus_messages (event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, published_at)
     select gen_random_uuid(), 'T', '${subject}', 'a' || n % 10, '', '{}', '', now() - $2::interval
       from generate_series(1, $1) n`,
    [count, age],
  );
}

const batchesOf = (count: number) => ({ batch: count, lastBatch: count });

const countRows = async (db: Db, from: string): Promise<number> =>
  (await db.query(`select count(*)::int as count from ${from}`)).rows[0]?.count;

const joined = (t: TestDatabase) =>
  until("the join is finished", async () => (await countRows(t.db, "bus_joins")) === 0);

/** Subscribes and records the event ids in order. */
async function record(bus: EventBus, consumer = "late", subjects = [subject]) {
  const seen: string[] = [];
  const subscription = await bus.subscribe({
    consumer,
    subjects,
    handle: async (all) => {
      seen.push(...all.map((each) => each.eventId));
      return all.map(() => done);
    },
  });
  return { seen, ...subscription, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
}

/** Every message once, and the messages of an aggregate in order. */
async function expectAllInOrder(db: Db, seen: readonly string[]): Promise<void> {
  const { rows } = await db.query<{ event_id: string; aggregate_key: string }>(
    `select event_id, aggregate_key from bus_messages order by message_id`,
  );
  expect(seen.length).toBe(rows.length);
  const aggregates = new Map(rows.map((row) => [row.event_id, row.aggregate_key]));
  const split = (ids: readonly string[]) => Map.groupBy(ids, (id) => aggregates.get(id));
  expect(split(seen)).toEqual(split(rows.map((row) => row.event_id)));
}

test("a consumer that joins while others publish gets history first, each message once", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 300);
  let publishing = true;
  const hasJoined = Promise.withResolvers<void>();
  const publishers = Array.from({ length: 4 }, async (_, n) => {
    // On a busy machine they could outrun the copy.
    for (let count = 0; publishing; count++) {
      if (count === 100) await hasJoined.promise;
      await t.bus.publish([event(`a${n}`)]);
    }
  });
  const smallBatches = await t.openBus({ historyBatchMax: 20 });
  await using late = await record(smallBatches);
  await joined(t);
  hasJoined.resolve();
  await until("it gets events published after it joined", async () => late.seen.length > 720);
  publishing = false;
  await Promise.all(publishers);
  await until("all are received", async () => (await countRows(t.db, "bus_deliveries where status <> 'DONE'")) === 0);
  await expectAllInOrder(t.db, late.seen);
});

test("a consumer reads several subjects in the order in which they were published", async () => {
  await using t = await openTest();
  for (let n = 0; n < 30; n++) await t.bus.publish([event("a", n % 3 ? subject : "other.events")]);
  const smallBatches = await t.openBus({ historyBatchMax: 4 });
  await using late = await record(smallBatches, "late", [subject, "other.events", subject]);
  await until("all are received", () => late.seen.length >= 30);
  await joined(t);
  await expectAllInOrder(t.db, late.seen);
});

test("the next process completes the copy of a dead one, without a gap or a duplicate", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 200);
  await startJoin(t.db, "late", [subject]);
  for (let n = 0; n < 3; n++) await copyHistory(t.db, "late", batchesOf(10));
  expect(await countRows(t.db, "bus_deliveries")).toBe(20);
  await using wire = await openFaultProxy(t.url);
  const dying = await t.openBus({ url: wire.url, historyBatchMax: 10, ackWaitMs: 1_000 });
  const cut = wire.cutNext("bus copy history", "answer").then(() => wire.cut());
  await expect(record(dying)).rejects.toThrow(BusUnavailable);
  await cut;
  expect(await countRows(t.db, "bus_joins")).toBe(1);
  await t.bus.publish([event("a1")]);
  await using next = await record(await t.openBus({ historyBatchMax: 10 }));
  await joined(t);
  await until("all is done", async () => (await countRows(t.db, "bus_deliveries where status <> 'DONE'")) === 0);
  expect(await countRows(t.db, "bus_deliveries")).toBe(201);
  expect(await countRows(t.db, "(select distinct message_id from bus_deliveries) d")).toBe(201);
  expect(next.seen.length).toBeGreaterThan(150);
});

test("processes that join together as one consumer copy each message once", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 200);
  const buses = await Promise.all([1, 2, 3].map(() => t.openBus({ historyBatchMax: 10 })));
  const all = await Promise.all(buses.map((bus) => record(bus)));
  await t.bus.publish([event("a1")]);
  await joined(t);
  await until("all is done", async () => (await countRows(t.db, "bus_deliveries where status <> 'DONE'")) === 0);
  const seen = all.flatMap((each) => each.seen);
  expect(seen.length).toBe(201);
  expect(new Set(seen).size).toBe(201);
});

test("a batch is copied completely or not at all, and does not block publishers", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 30);
  expect(await startJoin(t.db, "late", [subject])).toBe(true);
  expect(await copyHistory(t.db, "late", batchesOf(10))).toEqual({
    state: "copying",
    copied: 0n,
    copiedTo: 0n,
    copyUntil: 30n,
  });
  // Another process is copying a batch.
  const copier = await t.connect();
  await copier.query(`begin; select from bus_joins where consumer = 'late' for update`);
  expect(await copyHistory(t.db, "late", batchesOf(10))).toEqual({ state: "busy" });
  expect(await t.bus.publish([event("a1")])).toEqual([done]);
  await copier.query(`rollback`);
  expect(await copyHistory(t.db, "late", batchesOf(10))).toEqual({
    state: "copying",
    copied: 10n,
    copiedTo: 10n,
    copyUntil: 30n,
  });
  expect(await countRows(t.db, "bus_deliveries")).toBe(10);
  // Not the new message: one with a smaller id may still be uncommitted.
  expect(await copyHistory(t.db, "late", batchesOf(50))).toEqual({
    state: "copying",
    copied: 30n,
    copiedTo: 30n,
    copyUntil: 30n,
  });
  expect(await countRows(t.db, "bus_deliveries")).toBe(30);
});

test("a short history is copied before subscribe resolves", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 500);
  await using _ = await record(t.bus);
  expect(await countRows(t.db, "bus_joins")).toBe(0);
  expect(await countRows(t.db, "bus_deliveries")).toBe(500);
});

test("a long history is copied in batches of 25", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 501);
  const ended = Promise.withResolvers<void>();
  const batches: number[] = [];
  const onInfo = (message: string) => void (message.includes("has joined") && ended.resolve());
  const bounds = { batchMax: 500, onCopied: () => batches.push(1), onInfo, onError: ended.reject };
  await using _ = await joinSubjects({ db: t.db, consumer: "late", subjects: [subject], ...bounds });
  await ended.promise;
  expect(batches.length).toBe(22); // 20 whole batches, the 501st message, and the end of the join
  expect(await countRows(t.db, "bus_deliveries")).toBe(501);
});

test("the batch doubles, up to its maximum, after a round that did not halve what is left", () => {
  const batch = createBatchSize(80);
  const sizeAfter = (copiedTo: bigint, copyUntil: bigint) => {
    batch.adapt({ state: "copying", copied: 0n, copiedTo, copyUntil });
    return batch.size;
  };
  expect(sizeAfter(0n, 1_000n)).toBe(25);
  expect(sizeAfter(500n, 1_000n)).toBe(25);
  expect(sizeAfter(1_000n, 1_500n)).toBe(25); // 1,000 were left, now 500
  expect(sizeAfter(1_500n, 1_900n)).toBe(50); // 500 were left, now 400
  expect(sizeAfter(1_600n, 1_900n)).toBe(50);
  expect(sizeAfter(1_900n, 2_400n)).toBe(80);
  expect(sizeAfter(2_400n, 3_400n)).toBe(80);
});

test("a join waits at most briefly for a slow publisher, and retries", async () => {
  await using t = await openTest();
  const publisher = await t.connect();
  await publisher.query(`begin; select from bus_subscriptions`);
  await publisher.query(
    `insert into bus_messages (event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     values (gen_random_uuid(), 'T', '${subject}', 'a1', '', '{}', '')`,
  );
  // The bound is the join's own: this session would wait for the lock, and publishers behind it, without limit.
  await startJoin(t.db, "late", [subject]);
  expect(await copyHistory(t.open({ lockTimeoutMs: 0 }), "late", batchesOf(10))).toEqual({ state: "busy" });
  await using late = await record(t.bus); // The join is recorded, so the event will come.
  expect(await t.bus.publish([event("a2")])).toEqual([done]);
  await publisher.query(`commit`);
  await until("both are received", () => late.seen.length === 2);
  await joined(t);
});

test("a consumer that adds a subject during its join gets the history of both", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 30);
  await t.bus.publish([event("a", "other.events")]);
  await startJoin(t.db, "late", [subject]);
  await copyHistory(t.db, "late", batchesOf(10));
  await using late = await record(await t.openBus({ historyBatchMax: 10 }), "late", [subject, "other.events"]);
  await until("all are received", () => late.seen.length >= 31);
  await joined(t);
  expect(await countRows(t.db, "bus_subscriptions where consumer = 'late'")).toBe(2);
  expect(late.seen.length).toBe(31);
});

test("a long join is logged when it starts and when it ends", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 30);
  const infos: string[] = [];
  await using _ = await record(await t.openBus({ historyBatchMax: 10, onInfo: (message) => infos.push(message) }));
  await joined(t);
  await until("both are logged", () => infos.length >= 2);
  expect(infos).toEqual([
    "late joins: its history is copied in the background",
    expect.stringMatching(/^late has joined after \d+ s$/),
  ]);
});

const messages = busRetention(weekMs)[1] as ReturnType<typeof busRetention>[number];

test("a consumer that joins while retention runs gets no delivery without a message", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 20, "8 days");
  // Retention is blocked in the middle of its statement until the test releases it.
  await t.db.query(`
    create function hold() returns trigger language plpgsql as
      $$begin perform pg_advisory_xact_lock_shared(16); return old; end$$;
    create trigger hold before delete on bus_messages for each row execute function hold()`);
  const gate = await t.connect();
  await gate.query(`select pg_advisory_lock(16)`);
  const waiting = async () =>
    countRows(t.db, `pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
  const removing = deleteFinished(t.open(), messages);
  await until("retention is running", async () => (await waiting()) >= 1);
  let hasSubscribed = false;
  const subscribing = record(t.bus).finally(() => {
    hasSubscribed = true;
  });
  await until("the consumer has joined or waits", async () => hasSubscribed || (await waiting()) >= 2);
  await gate.query(`select pg_advisory_unlock(16)`);
  expect(await removing).toBe(20);
  await using late = await subscribing;
  await t.bus.publish([event("a1")]);
  await until("the new event is received", () => late.seen.length === 1);
  expect(await countRows(t.db, "bus_deliveries d left join bus_messages m using (message_id) where m is null")).toBe(0);
});

test("retention deletes no message while a consumer joins", async () => {
  await using t = await openTest();
  await storeHistory(t.db, 20, "8 days");
  await startJoin(t.db, "late", ["another.subject"]);
  expect(await deleteFinished(t.db, messages)).toBe(0);
  expect(await copyHistory(t.db, "late", batchesOf(10))).toEqual({ state: "joined" });
  expect(await deleteFinished(t.db, messages)).toBe(20);
});

test("deliveries without a message are settled and reported, and block nothing", async () => {
  await using t = await openTest();
  const errors: unknown[] = [];
  await t.db.query(`insert into bus_subscriptions values ('late', '${subject}')`);
  for (const aggregate of ["a", "b", "a", "c"]) await t.bus.publish([event(aggregate)]);
  await t.db.query(`delete from bus_messages where message_id in (1, 2)`);
  await using late = await record(await t.openBus({ onError: (error) => errors.push(error) }));
  await until("all are done", async () => (await countRows(t.db, "bus_deliveries where status <> 'DONE'")) === 0);
  await expectAllInOrder(t.db, late.seen);
  expect(late.seen.length).toBe(2);
  expect(String(errors[0])).toContain("2 deliveries to late are settled undelivered");
});

test("retention keeps unfinished deliveries and messages that have a delivery", async () => {
  await using t = await openTest();
  await t.db.query(`insert into bus_subscriptions values ('late', '${subject}')`);
  for (const aggregate of ["a", "b"]) await t.bus.publish([event(aggregate)]);
  await t.db.query(`
    update bus_messages set published_at = now() - interval '1 year';
    update bus_deliveries set next_retry_at = now() - interval '1 year';
    update bus_deliveries set status = 'DONE', done_at = now() - interval '1 year' where aggregate_key = 'a'`);
  expect(await deleteFinished(t.db, messages)).toBe(0);
  const removed: number[] = [];
  for (const policy of busRetention(weekMs)) removed.push(await deleteFinished(t.db, policy));
  expect(removed).toEqual([1, 1]);
  await using late = await record(t.bus);
  await until("the other is received", () => late.seen.length === 1);
  await expectAllInOrder(t.db, late.seen);
});
