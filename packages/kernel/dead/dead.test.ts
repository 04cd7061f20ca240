import { expect, test } from "vitest";
import { type Db, transaction } from "../db/index.ts";
import { deadInboxEvents } from "../inbox/index.ts";
import { deadOutboxEvents, outboxEvents } from "../outbox/index.ts";
import { fixedId, testDatabase } from "../testing/index.ts";
import { deadTable } from "./index.ts";

const asked = { by: "aki", reason: "the new build is out" };

/** FAILED outbox events, the first with number 1: their types in turn, each with its own error and ten attempts. */
async function fail(db: Db, ...types: string[]): Promise<void> {
  await db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     select id, type, 's', 'a' || n, 1, '{"n":1}', 'FAILED', 10, '100% wrong: ' || n
       from unnest($1::uuid[], $2::text[]) with ordinality as e(id, type, n) order by n`,
    [types.map((_, index) => fixedId(index + 1)), types],
  );
}

const records = async (db: Db) =>
  (await db.query(`select of_table, of_key, redriven_by, attempt_count, last_error from redrives order by 2`)).rows;

test("dead rows are listed oldest first, by pages, by their type, and by a part of their error", async () => {
  await using t = await testDatabase();
  await fail(t.db, "A", "B", "A");
  const ids = async (page: object) => (await deadOutboxEvents.list(t.db, { limit: 10, ...page })).map(({ id }) => id);
  expect(await deadOutboxEvents.list(t.db, { limit: 1 })).toEqual([
    {
      id: fixedId(1),
      event_type: "A",
      about: "a1",
      attempt_count: 10,
      last_error: "100% wrong: 1",
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      cursor: "1",
    },
  ]);
  expect(await ids({ limit: 2, after: "1" })).toEqual([fixedId(2), fixedId(3)]);
  expect(await ids({ eventType: "A" })).toEqual([fixedId(1), fixedId(3)]);
  expect(await ids({ error: "% wrong: 2" })).toEqual([fixedId(2)]);
  expect(await ids({ eventType: "A", error: "wrong: 2" })).toEqual([]);
  expect(await deadOutboxEvents.count(t.db)).toBe(3);
});

test("a redrive keeps who asked, why, and what the row had come to; whatever became of it, the row shows it", async () => {
  await using t = await testDatabase();
  await fail(t.db, "A", "A");
  expect(await deadOutboxEvents.redrive(t.db, [fixedId(1), fixedId(9)], asked)).toEqual([fixedId(1)]);
  await t.db.query(`update outbox_events set status = 'FAILED', attempt_count = 3, last_error = 'again'`);
  await deadOutboxEvents.redrive(t.db, [fixedId(1)], { by: "ben", reason: "once more" });
  const shown = await deadOutboxEvents.show(t.db, fixedId(1));
  expect(shown).toMatchObject({ id: fixedId(1), status: "PENDING", attempt_count: 0, payload: { n: 1 } });
  expect(shown?.redrives).toMatchObject([
    { redriven_by: "ben", reason: "once more", attempt_count: 3, last_error: "again" },
    { redriven_by: "aki", reason: asked.reason, attempt_count: 10, last_error: "100% wrong: 1" },
  ]);
  expect((await deadOutboxEvents.show(t.db, fixedId(2)))?.redrives).toEqual([]);
  expect(await deadOutboxEvents.show(t.db, fixedId(9))).toBeUndefined();
});

test("of many who redrive the same rows at once, each row is redriven and recorded once", async () => {
  await using t = await testDatabase();
  await fail(t.db, ...Array(20).fill("A"));
  const ids = Array.from({ length: 20 }, (_, index) => fixedId(index + 1));
  const all = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      deadOutboxEvents.redrive(t.db, n % 2 ? ids : ids.toReversed(), { ...asked, by: `${n}` }),
    ),
  );
  expect(all.flat().sort()).toEqual(ids);
  expect(await records(t.db)).toMatchObject(ids.map((id) => ({ of_table: "outbox_events", of_key: id })));
});

test("a redrive that nobody answers for does not happen, nor one whose other half fails", async () => {
  await using t = await testDatabase();
  await fail(t.db, "A");
  for (const nobody of [
    { by: "", reason: "why" },
    { by: "aki", reason: "" },
    { by: "aki", reason: "x".repeat(501) },
    { by: "x".repeat(129), reason: "why" },
  ])
    await expect(deadOutboxEvents.redrive(t.db, [fixedId(1)], nobody)).rejects.toThrow(/redrive_says_wh/);
  const halved = deadTable({
    claims: outboxEvents,
    from: "outbox_events r",
    isDead: "r.status = 'FAILED'",
    id: "r.event_id",
    cursor: "r.position",
    about: "r.subject",
    since: "r.created_at",
    whole: "r.status",
    whenRedriven: async () => {
      throw new Error("the other half");
    },
  });
  await expect(halved.redrive(t.db, [fixedId(1)], asked)).rejects.toThrow("the other half");
  expect(await deadOutboxEvents.show(t.db, fixedId(1))).toMatchObject({ status: "FAILED", redrives: [] });
});

test("a redrive within a larger transaction is undone with it, record and all", async () => {
  await using t = await testDatabase();
  await fail(t.db, "A");
  const undone = transaction(t.db, async (tx) => {
    expect(await outboxEvents.redrive(tx, [fixedId(1)], asked)).toEqual([fixedId(1)]);
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await records(t.db)).toEqual([]);
  expect(await deadOutboxEvents.list(t.db, { limit: 10 })).toHaveLength(1);
});

test("a consumer lists and shows its own dead letters only, with their bytes", async () => {
  await using t = await testDatabase();
  const payload = Buffer.alloc(100, 7);
  await t.db.query(
    `insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     select c, $1, 'T', 's', 'a', 'never', '{}', $2 from unnest(array['one', 'it''s']) as e(c)`,
    [fixedId(1), payload],
  );
  const [one, other] = [deadInboxEvents("one"), deadInboxEvents("it's")];
  expect(await one.list(t.db, { limit: 10 })).toMatchObject([{ id: "1", about: "a" }]);
  expect(await other.list(t.db, { limit: 10 })).toMatchObject([{ id: "2" }]);
  expect(await one.show(t.db, "1")).toMatchObject({ status: "DEAD", payload_base64: payload.toString("base64") });
  expect(await one.show(t.db, "2")).toBeUndefined();
});

test("what cannot be an id of a table is told from what can", () => {
  const [uuids, numbers] = [deadOutboxEvents, deadInboxEvents("one")];
  const canBe = (text: string) => [uuids.isId(text), numbers.isId(text)];
  expect(canBe(fixedId(1).toUpperCase())).toEqual([true, false]);
  expect(canBe("17")).toEqual([false, true]);
  for (const text of ["", "0", "1.5", `urn:uuid:${fixedId(1)}`, "9".repeat(19)])
    expect(canBe(text)).toEqual([false, false]);
});

test("rows that are not dead are not listed, and a row shows the redrives of its own table only", async () => {
  await using t = await testDatabase();
  await fail(t.db, "A", "A");
  await t.db.query(`update outbox_events set status = 'PENDING' where event_id = $1`, [fixedId(1)]);
  expect((await deadOutboxEvents.list(t.db, { limit: 10 })).map(({ id }) => id)).toEqual([fixedId(2)]);
  await t.db.query(
    `insert into redrives (of_table, of_key, redriven_by, reason, attempt_count) values ('notifications', $1, 'ben', 'why', 1)`,
    [fixedId(2)],
  );
  expect(await deadOutboxEvents.show(t.db, fixedId(2))).toMatchObject({ redrives: [] });
});
