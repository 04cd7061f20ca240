import { expect, test } from "vitest";
import { type Db, transaction } from "../db/index.ts";
import { inboxDeadLetters } from "../inbox/index.ts";
import { outboxClaims, outboxDeadLetters } from "../outbox/index.ts";
import { fixedId, testDatabase } from "../testing/index.ts";
import { createDeadLetters } from "./index.ts";

const request = { by: "aki", reason: "the new build is out" };

/** FAILED outbox events of these types, numbered from 1, each with its own error and ten attempts. */
async function insertFailed(db: Db, ...types: string[]): Promise<void> {
  await db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     select id, type, 's', 'a' || n, 1, '{"n":1}', 'FAILED', 10, '100% wrong: ' || n
       from unnest($1::uuid[], $2::text[]) with ordinality as e(id, type, n) order by n`,
    [types.map((_, index) => fixedId(index + 1)), types],
  );
}

const readRedrives = async (db: Db) =>
  (await db.query(`select of_table, of_key, redriven_by, attempt_count, last_error from redrives order by 2`)).rows;

test("dead letters are listed oldest first, in pages, by type and by a part of the error", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A", "B", "A");
  const ids = async (page: object) => (await outboxDeadLetters.list(t.db, { limit: 10, ...page })).map(({ id }) => id);
  expect(await outboxDeadLetters.list(t.db, { limit: 1 })).toEqual([
    {
      id: fixedId(1),
      event_type: "A",
      about: "a1",
      attempt_count: 10,
      last_error: "100% wrong: 1",
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      group: expect.stringMatching(/^[0-9a-f]{32}$/),
      cursor: "1",
      version: "1",
      parked: 0,
    },
  ]);
  expect(await ids({ limit: 2, after: "1" })).toEqual([fixedId(2), fixedId(3)]);
  expect(await ids({ eventType: "A" })).toEqual([fixedId(1), fixedId(3)]);
  expect(await ids({ error: "% wrong: 2" })).toEqual([fixedId(2)]);
  expect(await ids({ eventType: "A", error: "wrong: 2" })).toEqual([]);
  expect(await outboxDeadLetters.count(t.db)).toBe(3);
});

test("a redrive is recorded with who, why and the state of the row", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A", "A");
  expect(await outboxDeadLetters.redrive(t.db, [fixedId(1), fixedId(9)], request)).toEqual([fixedId(1)]);
  await t.db.query(`update outbox_events set status = 'FAILED', attempt_count = 3, last_error = 'again'`);
  await outboxDeadLetters.redrive(t.db, [fixedId(1)], { by: "ben", reason: "once more" });
  const shown = await outboxDeadLetters.show(t.db, fixedId(1));
  expect(shown).toMatchObject({ id: fixedId(1), status: "PENDING", attempt_count: 0, payload: { n: 1 } });
  expect(shown?.redrives).toMatchObject([
    { redriven_by: "ben", reason: "once more", attempt_count: 3, last_error: "again" },
    { redriven_by: "aki", reason: request.reason, attempt_count: 10, last_error: "100% wrong: 1" },
  ]);
  expect((await outboxDeadLetters.show(t.db, fixedId(2)))?.redrives).toEqual([]);
  expect(await outboxDeadLetters.show(t.db, fixedId(9))).toBeUndefined();
});

test("concurrent redrives of the same rows redrive and record each row once", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, ...Array(20).fill("A"));
  const ids = Array.from({ length: 20 }, (_, index) => fixedId(index + 1));
  const all = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      outboxDeadLetters.redrive(t.db, n % 2 ? ids : ids.toReversed(), { ...request, by: `${n}` }),
    ),
  );
  expect(all.flat().sort()).toEqual(ids);
  expect(await readRedrives(t.db)).toMatchObject(ids.map((id) => ({ of_table: "outbox_events", of_key: id })));
});

test("a redrive without who and why, or whose callback fails, changes nothing", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A");
  for (const invalid of [
    { by: "", reason: "why" },
    { by: "aki", reason: "" },
    { by: "aki", reason: "x".repeat(501) },
    { by: "x".repeat(129), reason: "why" },
  ])
    await expect(outboxDeadLetters.redrive(t.db, [fixedId(1)], invalid)).rejects.toThrow(/redrive_says_wh/);
  const failing = createDeadLetters({
    claims: outboxClaims,
    from: "outbox_events r",
    isDead: "r.status = 'FAILED'",
    id: "r.event_id",
    cursor: "r.position",
    about: "r.subject",
    since: "r.created_at",
    detail: "r.status",
    onRedriven: async () => {
      throw new Error("the callback failed");
    },
  });
  await expect(failing.redrive(t.db, [fixedId(1)], request)).rejects.toThrow("the callback failed");
  expect(await outboxDeadLetters.show(t.db, fixedId(1))).toMatchObject({ status: "FAILED", redrives: [] });
});

test("a redrive in a transaction is rolled back with it, with its record", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A");
  const rolledBack = transaction(t.db, async (tx) => {
    expect(await outboxClaims.redrive(tx, [fixedId(1)], request)).toEqual([fixedId(1)]);
    throw new Error("no");
  });
  await expect(rolledBack).rejects.toThrow("no");
  expect(await readRedrives(t.db)).toEqual([]);
  expect(await outboxDeadLetters.list(t.db, { limit: 10 })).toHaveLength(1);
});

test("a consumer lists, counts, shows and redrives only its own dead letters", async () => {
  await using t = await testDatabase();
  const payload = Buffer.alloc(100, 7);
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     select c, $1, 'T', 's', 'a', 'never', '{}', $2 from unnest(array['one', 'it''s']) as e(c)`,
    [fixedId(1), payload],
  );
  const [one, other] = [inboxDeadLetters("one"), inboxDeadLetters("it's")];
  expect(await one.list(t.db, { limit: 10 })).toMatchObject([{ id: "1", about: "a" }]);
  expect(await other.list(t.db, { limit: 10 })).toMatchObject([{ id: "2" }]);
  expect(await one.show(t.db, "1")).toMatchObject({ status: "DEAD", payload_base64: payload.toString("base64") });
  expect(await one.show(t.db, "2")).toBeUndefined();
  expect(await one.count(t.db)).toBe(1);
  expect(await one.redrive(t.db, ["1", "2"], request)).toEqual(["1"]);
  expect(await readRedrives(t.db)).toMatchObject([{ of_table: "inbox_dlq", of_key: "1" }]);
  expect(await other.show(t.db, "2")).toMatchObject({ status: "DEAD", redrives: [] });
});

test("isId accepts only IDs of the key type of the table", () => {
  const [uuids, numbers] = [outboxDeadLetters, inboxDeadLetters("one")];
  const canBe = (text: string) => [uuids.isId(text), numbers.isId(text)];
  expect(canBe(fixedId(1).toUpperCase())).toEqual([true, false]);
  expect(canBe("17")).toEqual([false, true]);
  for (const text of ["", "0", "1.5", `urn:uuid:${fixedId(1)}`, "9".repeat(19)])
    expect(canBe(text)).toEqual([false, false]);
});

test("live rows are not listed, and a row shows the redrives of its own table only", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A", "A");
  await t.db.query(`update outbox_events set status = 'PENDING' where event_id = $1`, [fixedId(1)]);
  expect((await outboxDeadLetters.list(t.db, { limit: 10 })).map(({ id }) => id)).toEqual([fixedId(2)]);
  await t.db.query(
    `insert into redrives (of_table, of_key, redriven_by, reason, attempt_count) values ('notifications', $1, 'ben', 'why', 1)`,
    [fixedId(2)],
  );
  expect(await outboxDeadLetters.show(t.db, fixedId(2))).toMatchObject({ redrives: [] });
});

test("a discard deletes the row, keeps it with who and why, and happens once", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A", "A");
  await outboxDeadLetters.redrive(t.db, [fixedId(1)], { by: "ben", reason: "maybe" });
  expect(await outboxDeadLetters.discard(t.db, [fixedId(1)], request)).toEqual([]);
  await t.db.query(`update outbox_events set status = 'FAILED' where status = 'PENDING'`);
  expect(await outboxDeadLetters.discard(t.db, [fixedId(1), fixedId(9)], request)).toEqual([fixedId(1)]);
  expect(await outboxDeadLetters.discard(t.db, [fixedId(1)], request)).toEqual([]);
  expect(await outboxDeadLetters.redrive(t.db, [fixedId(1)], request)).toEqual([]);
  expect(await outboxDeadLetters.show(t.db, fixedId(1))).toBeUndefined();
  expect(await outboxDeadLetters.showDiscarded(t.db, fixedId(1))).toMatchObject({
    id: fixedId(1),
    discarded_by: "aki",
    reason: request.reason,
    row: { event_id: fixedId(1), event_type: "A", payload: { n: 1 }, last_error: "100% wrong: 1" },
    redrives: [{ redriven_by: "ben", reason: "maybe" }],
  });
  expect(await outboxDeadLetters.showDiscarded(t.db, fixedId(2))).toBeUndefined();
  await expect(outboxDeadLetters.discard(t.db, [fixedId(2)], { by: "aki", reason: "" })).rejects.toThrow(/says_why/);
  expect(await outboxDeadLetters.count(t.db)).toBe(1);
});

test("of concurrent redrives and discards of one row, one takes effect", async () => {
  await using t = await testDatabase();
  const count = 40;
  await insertFailed(t.db, ...Array(count).fill("A"));
  const ids = Array.from({ length: count }, (_, index) => fixedId(index + 1));
  // One row per call, so that both kinds win some.
  const results = await Promise.all(
    ids.flatMap((id, n) => {
      const actions = ["redrive", "discard", "redrive", "discard"] as const;
      const calls = actions.map(async (action) => ({
        action,
        done: await outboxDeadLetters[action](t.db, [id], { ...request, by: action }),
      }));
      return n % 2 ? calls : calls.toReversed();
    }),
  );
  const doneBy = (wanted: string) => results.filter(({ action }) => action === wanted).flatMap(({ done }) => done);
  const [redriven, discarded] = [doneBy("redrive"), doneBy("discard")];
  expect([...redriven, ...discarded].sort()).toEqual(ids);
  const { rows } = await t.db.query(`select event_id, status from outbox_events order by 1`);
  expect(rows).toEqual(redriven.sort().map((event_id) => ({ event_id, status: "PENDING" })));
  const { rows: records } = await t.db.query(`select of_key, action from redrives order by 1`);
  expect(records).toEqual(ids.map((of_key) => ({ of_key, action: redriven.includes(of_key) ? "redrive" : "discard" })));
});

test("a discarded event no longer parks its aggregate, and the order of the others is kept", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A");
  for (const n of [2, 3])
    await t.db.query(
      `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload) values ($1, 'B', 's', 'a1', $2, '{}')`,
      [fixedId(n), n],
    );
  const claim = async () =>
    (await outboxClaims.claim(t.db, { limit: 10, leaseMs: 60_000, worker: "w" })).map(({ eventId }) => eventId);
  expect(await claim()).toEqual([]);
  await outboxDeadLetters.discard(t.db, [fixedId(1)], request);
  expect(await claim()).toEqual([fixedId(2), fixedId(3)]);
});

test("a discarded event of a consumer stays marked as processed, and other consumers keep theirs", async () => {
  await using t = await testDatabase();
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     select c, $1, 'T', 's', 'a', 'never', '{}', 'x' from unnest(array['one', 'other']) as e(c)`,
    [fixedId(1)],
  );
  const one = inboxDeadLetters("one");
  expect(await one.discard(t.db, ["1", "2"], request)).toEqual(["1"]);
  expect(await one.showDiscarded(t.db, "1")).toMatchObject({ row: { consumer: "one", payload: "\\x78" } });
  expect(await inboxDeadLetters("other").showDiscarded(t.db, "1")).toBeUndefined();
  expect(await inboxDeadLetters("other").count(t.db)).toBe(1);
});

test("dead letters are found by their user, in JSON and in encoded events", async () => {
  await using t = await testDatabase();
  await insertFailed(t.db, "A", "B", "C");
  const payloads = [{ user_id: "u_1" }, { user_id: "u_12" }, { players: [{ user_id: "u_2" }, { user_id: "u_1" }] }];
  for (const [index, payload] of payloads.entries())
    await t.db.query(`update outbox_events set payload = $2 where event_id = $1`, [fixedId(index + 1), payload]);
  const users = async (user: string) => (await outboxDeadLetters.list(t.db, { limit: 9, user })).map(({ id }) => id);
  expect(await users("u_1")).toEqual([fixedId(1), fixedId(3)]);
  expect(await users("u_12")).toEqual([fixedId(2)]);
  expect(await users("u_")).toEqual([]);

  const encoded = (user: string) => Buffer.concat([Buffer.from([0x82, 0x01, user.length]), Buffer.from(user)]);
  for (const [index, user] of ["u_1", "u_12"].entries())
    await t.db.query(
      `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
       values ('one', $1, 'T', 's', 'a', 'never', '{}', $2)`,
      [fixedId(index), encoded(user)],
    );
  const found = async (user: string) =>
    (await inboxDeadLetters("one").list(t.db, { limit: 9, user })).map(({ id }) => id);
  expect(await found("u_1")).toEqual(["1"]);
  expect(await found("u_12")).toEqual(["2"]);
  expect(await found("x".repeat(300))).toEqual([]);
});
