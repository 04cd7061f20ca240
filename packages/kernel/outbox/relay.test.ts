import { expect, test } from "vitest";
import { BusUnavailable, type Envelope, type EventBus } from "../bus/index.ts";
import { type Db, transaction } from "../db/index.ts";
import { fixedId, testDatabase, until } from "../testing/index.ts";
import { dead, done, type Outcome, release, retry } from "../worker/index.ts";
import { createRelay, type NewEvent, openOutbox, outboxBacklog, outboxDeadLetters } from "./index.ts";

const outbox = openOutbox();
let ids = 1;
const event = (aggregateKey: string, version = 1): NewEvent => ({
  eventId: fixedId(ids++),
  eventType: "ThingHappened",
  subject: "thing.events",
  aggregateKey,
  version,
  payload: { aggregateKey, version },
});
const append = (db: Db, ...events: NewEvent[]) => transaction(db, (tx) => outbox.append(tx, ...events));

/** A bus that records published events and returns the given outcomes. */
function recordingBus(respond: (event: Envelope) => Outcome | Promise<Outcome> = () => done) {
  const published: Envelope[] = [];
  const bus: Pick<EventBus, "publish"> = {
    async publish(events: readonly Envelope[]) {
      return Promise.all(
        events.map(async (each) => {
          const outcome = await respond(each);
          if (outcome.kind === "done") published.push(each);
          return outcome;
        }),
      );
    },
  };
  return {
    bus,
    published,
    versions: (key: string) => published.filter((e) => e.aggregateKey === key).map((e) => decode(e).version),
  };
}

const decode = (event: Envelope) => JSON.parse(new TextDecoder().decode(event.payload));

test("a committed event is published unchanged, a rolled-back one never", async () => {
  await using t = await testDatabase();
  const { bus, published } = recordingBus();
  await transaction(t.db, async (tx) => {
    await outbox.append(tx, event("never"));
    throw new Error("no");
  }).catch(() => {});
  await append(t.db, { ...event("a"), headers: { tenant: "t1" }, occurredAt: "2026-01-08T07:10:00.123456Z" });
  expect(await createRelay({ db: t.db, bus }).runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(published).toMatchObject([
    {
      eventType: "ThingHappened",
      subject: "thing.events",
      aggregateKey: "a",
      occurredAt: "2026-01-08T07:10:00.123456Z",
      headers: { tenant: "t1" },
    },
  ]);
  expect(decode(published[0] as Envelope)).toEqual({ aggregateKey: "a", version: 1 });
  expect(await createRelay({ db: t.db, bus }).runOnce()).toMatchObject({ claimed: 0 });
});

test("events of one aggregate are published in order, also after a failure", async () => {
  await using t = await testDatabase();
  let failing = true;
  const stored: string[] = [];
  const { bus, versions } = recordingBus(async (e) => {
    const { version, aggregateKey } = decode(e);
    expect(stored.filter((s) => s === aggregateKey).length).toBe(version - 1); // The one before it is stored.
    if (aggregateKey === "a" && version === 2 && failing) return retry(0, "not yet");
    stored.push(aggregateKey);
    return done;
  });
  await append(t.db, event("a", 1), event("a", 2), event("b", 1), event("a", 3));
  const r = createRelay({ db: t.db, bus, settings: { backoff: { baseMs: 1, capMs: 1 } } });
  expect(await r.runOnce()).toMatchObject({ claimed: 4, done: 2, retry: 1, release: 1 });
  failing = false;
  await until("the rest is published", async () => {
    await r.runOnce();
    return versions("a").length === 3;
  });
  expect(versions("a")).toEqual([1, 2, 3]);
});

test("an event that cannot be encoded is FAILED and parks its aggregate until a redrive", async () => {
  await using t = await testDatabase();
  const { bus, versions } = recordingBus();
  let broken = true;
  const r = createRelay({
    db: t.db,
    bus,
    encode({ payload }) {
      if (broken && payload.includes('"poison"') && JSON.parse(payload).version === 1) throw new Error("no such field");
      return new TextEncoder().encode(payload);
    },
  });
  const poison = event("poison", 1);
  await append(t.db, poison, event("poison", 2), event("fine", 1));
  await r.runOnce();
  await r.runOnce();
  expect([versions("poison"), versions("fine")]).toEqual([[], [1]]);
  expect(await outboxDeadLetters.list(t.db, { limit: 10 })).toMatchObject([
    { id: poison.eventId, attempt_count: 1, last_error: "cannot be encoded: Error: no such field", parked: 1 },
  ]);
  broken = false;
  const request = { by: "aki", reason: "the field is there" };
  expect(await outboxDeadLetters.redrive(t.db, [poison.eventId ?? ""], request)).toEqual([poison.eventId]);
  expect(await outboxDeadLetters.redrive(t.db, [poison.eventId ?? ""], request)).toEqual([]); // It is idempotent.
  await r.runOnce();
  expect(versions("poison")).toEqual([1, 2]);
});

test("an event that only a newer build can encode is retried", async () => {
  await using t = await testDatabase();
  const { bus, versions } = recordingBus();
  await append(t.db, event("a"));
  const older = createRelay({
    db: t.db,
    bus,
    encode() {
      throw Object.assign(new Error("not a type that this build knows"), { maybeNewerSchema: true });
    },
    settings: { backoff: { baseMs: 0, capMs: 0 } },
  });
  expect(await older.runOnce()).toMatchObject({ retry: 1 });
  expect(await createRelay({ db: t.db, bus }).runOnce()).toMatchObject({ done: 1 });
  expect(versions("a")).toEqual([1]);
});

test("an event that the bus can never store is FAILED, and others are retried", async () => {
  await using t = await testDatabase();
  const { bus } = recordingBus((e) => (e.aggregateKey === "large" ? dead("too large") : retry(0, "not stored")));
  await append(t.db, event("large"), event("later"));
  expect(await createRelay({ db: t.db, bus }).runOnce()).toMatchObject({ dead: 1, retry: 1 });
});

test("an unavailable bus costs no attempts, and all events are published afterwards", async () => {
  await using t = await testDatabase();
  let isDown = true;
  const { bus, published } = recordingBus(() => {
    if (isDown) throw new BusUnavailable("connection refused");
    return done;
  });
  await append(t.db, event("a", 1), event("a", 2), event("b", 1));
  const r = createRelay({ db: t.db, bus, settings: { attemptsMax: 2 } });
  for (let i = 0; i < 5; i++) expect(await r.runOnce()).toMatchObject({ claimed: 3, release: 3 });
  const { rows } = await t.db.query(`select distinct status, attempt_count from outbox_events`);
  expect(rows).toEqual([{ status: "PENDING", attempt_count: 0 }]);
  isDown = false;
  await using running = createRelay({ db: t.db, bus });
  running.start();
  await until("all are published", () => published.length === 3);
});

test("a released event costs no attempt, and the relay pauses", async () => {
  await using t = await testDatabase();
  let publishes = 0;
  const { bus } = recordingBus(() => {
    publishes++;
    return release("the stream is full", 60_000);
  });
  await append(t.db, event("a"));
  // One at a time: with room for more, the next claim could take b before the bus has responded.
  await using running = createRelay({ db: t.db, bus, settings: { pollMs: 1, concurrency: 1 } });
  running.start();
  await until("it was published once", () => publishes > 0);
  await append(t.db, event("b"));
  await until("both are released", async () => {
    const { rows } = await t.db.query(`select from outbox_events where status = 'PENDING' and attempt_count = 0`);
    return rows.length === 2;
  });
  expect(publishes).toBe(1);
});

test("the age of the backlog ignores events parked behind a FAILED one", async () => {
  await using t = await testDatabase();
  const { bus } = recordingBus((e) => (decode(e).version === 1 ? dead("no") : done));
  await append(t.db, event("a", 1), event("a", 2));
  await createRelay({ db: t.db, bus }).runOnce();
  expect(await outboxBacklog(t.db)).toEqual({ pending: 1, inFlight: 0, failed: 1, oldestClaimableMs: 0 });
  await append(t.db, event("b", 2));
  expect((await outboxBacklog(t.db)).oldestClaimableMs).toBeGreaterThan(0);
});

test("each event gets its own outcome, also next to one that cannot be encoded", async () => {
  await using t = await testDatabase();
  const { bus, published } = recordingBus((e) => (e.aggregateKey === "large" ? dead("too large") : done));
  const encode = ({ payload }: { payload: string }) => {
    if (payload.includes("garbled")) throw new Error("no such field");
    return new TextEncoder().encode(payload);
  };
  await append(t.db, event("garbled"), event("fine"), event("large"), event("good"));
  await createRelay({ db: t.db, bus, encode }).runOnce();
  const { rows } = await t.db.query(`select aggregate_key, status, last_error from outbox_events order by position`);
  expect(rows).toEqual([
    { aggregate_key: "garbled", status: "FAILED", last_error: "cannot be encoded: Error: no such field" },
    { aggregate_key: "fine", status: "PUBLISHED", last_error: null },
    { aggregate_key: "large", status: "FAILED", last_error: "too large" },
    { aggregate_key: "good", status: "PUBLISHED", last_error: null },
  ]);
  expect(published.map(({ aggregateKey }) => aggregateKey)).toEqual(["fine", "good"]);
});

test("a failed publish is retried with backoff and counted as an attempt", async () => {
  await using t = await testDatabase();
  const { bus } = recordingBus((e) => {
    if (e.aggregateKey === "throws") throw new Error("a bug in the adapter");
    return retry(0, "not stored");
  });
  for (const key of ["throws", "answers"]) {
    await append(t.db, event(key));
    const r = createRelay({ db: t.db, bus, settings: { backoff: { baseMs: 600_000, capMs: 600_000 } } });
    expect(await r.runOnce()).toMatchObject({ claimed: 1, retry: 1 });
    expect(await r.runOnce()).toMatchObject({ claimed: 0 });
  }
  const { rows } = await t.db.query(`select distinct status, attempt_count from outbox_events`);
  expect(rows).toEqual([{ status: "PENDING", attempt_count: 1 }]);
});

test("the age of the backlog ignores events that wait for a retry", async () => {
  await using t = await testDatabase();
  const { bus } = recordingBus(() => retry(0, "not stored"));
  await append(t.db, event("a"));
  await createRelay({ db: t.db, bus, settings: { backoff: { baseMs: 600_000, capMs: 600_000 } } }).runOnce();
  expect(await outboxBacklog(t.db)).toEqual({ pending: 1, inFlight: 0, failed: 0, oldestClaimableMs: 0 });
});

test("relays of two buses publish each event to the bus of its subject, in the order of its aggregate", async () => {
  await using t = await testDatabase();
  const [events, jobs] = [recordingBus(), recordingBus()];
  const order: string[] = [];
  const recording = (bus: Pick<EventBus, "publish">): typeof bus => ({
    publish(envelopes) {
      order.push(...envelopes.filter(({ aggregateKey }) => aggregateKey === "both").map(({ subject }) => subject));
      return bus.publish(envelopes);
    },
  });
  const subjects = ["thing.jobs"];
  const eventsRelay = createRelay({ db: t.db, bus: recording(events.bus), subjects: { except: subjects } });
  const jobsRelay = createRelay({ db: t.db, bus: recording(jobs.bus), subjects: { only: subjects } });
  const job = (key: string, version: number) => ({ ...event(key, version), subject: "thing.jobs" });
  await append(t.db, event("a", 1), job("b", 1), event("both", 1), job("both", 2), event("both", 3), job("a", 2));
  // The relay of the jobs finds two events that wait for events of the other bus.
  expect(await jobsRelay.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  await until("all are published", async () => {
    await Promise.all([eventsRelay.runOnce(), jobsRelay.runOnce()]);
    return events.published.length + jobs.published.length === 6;
  });
  expect(events.published.map(({ aggregateKey }) => aggregateKey)).toEqual(["a", "both", "both"]);
  expect(jobs.published.map(({ aggregateKey }) => aggregateKey).toSorted()).toEqual(["a", "b", "both"]);
  expect(order).toEqual(["thing.events", "thing.jobs", "thing.events"]);
});

test("events of an unavailable bus delay no event of another, however many they are", async () => {
  await using t = await testDatabase();
  const { bus, published } = recordingBus();
  const down: Pick<EventBus, "publish"> = { publish: () => Promise.reject(new BusUnavailable("connection refused")) };
  const subjects = ["thing.jobs"];
  const settings = { batchMax: 10, concurrency: 20 };
  const jobsRelay = createRelay({ db: t.db, bus: down, subjects: { only: subjects }, settings });
  const eventsRelay = createRelay({ db: t.db, bus, subjects: { except: subjects }, settings });
  await append(t.db, ...Array.from({ length: 100 }, (_, n) => ({ ...event(`job ${n}`), subject: "thing.jobs" })));
  await append(t.db, event("a", 1));
  expect(await jobsRelay.runOnce()).toMatchObject({ claimed: 10, release: 10 });
  expect(await eventsRelay.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(published.map(({ aggregateKey }) => aggregateKey)).toEqual(["a"]);
});

test("a subject that could change the claim statement is rejected", async () => {
  await using t = await testDatabase();
  const { bus } = recordingBus();
  expect(() => createRelay({ db: t.db, bus, subjects: { only: ["x') or ('1' = '1"] } })).toThrow("cannot be a subject");
});
