import { connect } from "node:net";
import type { Db } from "@todoke/kernel/db";
import { fixedId, until } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { NewNotification } from "../store/new-notifications.ts";
import {
  InboxClient,
  type InboxProcess,
  inboxProcess,
  openTransaction,
  readingKey,
  untilSettled,
} from "../stream/testing.ts";
import { setup } from "../testing.ts";

const streamOf = ({ url }: { url: string }, userId = "u_123") => `${url}/v1/users/${userId}/inbox/stream`;

const insert = (by: Pick<Db, "query">, userId: string, text = "told") =>
  by.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     values (gen_random_uuid(), gen_random_uuid(), $1, 'EntitlementGranted', $2, now()) returning notification_id`,
    [userId, { en: text, ja: text }],
  );

/** Transactions that begin and write one after the other, and commit in another order: `order` says who when. */
async function writeOvertaking(db: Db, userId: string, order: readonly number[]): Promise<void> {
  await using open = new AsyncDisposableStack();
  const transactions = [];
  for (const _ of order) {
    const transaction = open.use(await openTransaction(db));
    await insert(transaction, userId);
    transactions.push(transaction);
  }
  for (const place of order) await transactions[place]?.commit();
}

/** The statements of the live inbox, counted, with the rows that they brought. */
function counted(db: Db) {
  const statements: Pick<NewNotification, "isSettled" | "text">[][] = [];
  const query = async (wish: { name?: string }) => {
    const result = await db.query(wish as never);
    if (wish.name === "select inbox news") statements.push((result as unknown as { rows: never[] }).rows);
    return result;
  };
  return { statements, db: { query } as unknown as Db };
}

test("whatever is cut, and in whatever order transactions commit, a client is told every notification once", async () => {
  await using t = await setup();
  await using one = await inboxProcess({ url: t.url, db: t.open() });
  await using other = await inboxProcess({ url: t.url, db: t.open() });
  const writers = [0, 1, 2, 3].map(() => t.open({ poolMax: 4 }));
  let runs = 0;
  const commitOrders = fc.array(fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }), { minLength: 16, maxLength: 24 });
  const cuts = fc.infiniteStream(fc.nat(9));
  await fc.assert(
    fc.asyncProperty(commitOrders, cuts, async (orders, cutAfter) => {
      const userId = `u_${runs++}`;
      await using client = new InboxClient();
      expect(await client.connect(streamOf(one, userId), readingKey)).toBe(200);
      // One that comes back without an id begins with what is new then, and has missed what was written before.
      await until("it knows where it is", () => client.lastEventId !== undefined);
      const writing = Promise.all(
        writers.map(async (db, writer) => {
          for (const order of orders.filter((_, place) => place % writers.length === writer)) {
            await writeOvertaking(db, userId, order);
            one.signal();
          }
        }),
      );
      const rows = orders.length * 4;
      const isTold = () => client.told.length >= rows;
      // It comes back to one process and the other by turns, each time for as many events as the property says.
      for (let turn = 0; !isTold(); turn++) {
        client.cut();
        await client.over;
        const enough = client.told.length + 1 + (cutAfter.next().value ?? 0);
        const isCut = () => client.told.length >= enough;
        await client.connect(streamOf(turn % 2 ? one : other, userId), readingKey, isCut);
        await until("the next are told", () => isCut() || isTold());
      }
      await writing;
      const { rows: written } = await t.db.query(`select notification_id from notifications where user_id = $1`, [
        userId,
      ]);
      expect(client.ids.toSorted()).toEqual(written.map(({ notification_id }) => notification_id).toSorted());
    }),
    { numRuns: 6 },
  );
});

test("what is committed behind a transaction that is still open is told after it, and both once", async () => {
  await using t = await setup();
  const { statements, db } = counted(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey);
  await using slow = await openTransaction(t.db);
  const first = await insert(slow, "u_123");
  const second = await insert(t.db, "u_123");
  process.signal();
  await until("the second was seen and kept back", () => statements.some((rows) => rows.some((row) => !row.isSettled)));
  expect(client.told).toEqual([]);
  await slow.commit();
  await until("both are told", () => client.told.length >= 2);
  expect(client.ids).toEqual([first, second].map(({ rows }) => rows[0].notification_id));
});

test("a thousand clients are read for by one statement, and hold no connection to the database", async () => {
  await using t = await setup();
  const { statements, db } = counted(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  const users = Array.from({ length: 250 }, (_, n) => `u_${n}`);
  const clients = users.flatMap((userId) => [0, 1, 2, 3].map(() => ({ userId, client: new InboxClient() })));
  await using opened = new AsyncDisposableStack();
  for (const { userId, client } of clients) {
    opened.use(client);
    expect(await client.connect(streamOf(process, userId), readingKey)).toBe(200);
  }
  expect(process.live.size).toBe(1_000);
  await until("no connection is in use", () => t.db.idleCount === t.db.totalCount);
  const before = statements.length;
  const sinceMs = performance.now();
  await t.db.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     select gen_random_uuid(), gen_random_uuid(), user_id, 'T', '{"en": "", "ja": ""}', now() from unnest($1::text[]) user_id`,
    [users],
  );
  process.signal();
  await until("every client is told", () => clients.every(({ client }) => client.told.length === 1));
  const after = statements.slice(before);
  const bringing = after.filter((rows) => rows.some(({ isSettled }) => isSettled));
  expect(bringing.map((rows) => rows.length)).toEqual([1_000]);
  expect(after.length).toBeLessThanOrEqual(2 + (performance.now() - sinceMs) / 100);
});

const fromTheFirst = `0.${fixedId(0)}`;

/** More than the machine keeps for a connection that nobody reads from. */
const much = 1_500;
const writeMuch = (db: Db) =>
  db.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     select gen_random_uuid(), gen_random_uuid(), 'u_123', 'T', jsonb_build_object('en', repeat('x', 20000), 'ja', ''), now()
       from generate_series(1, $1)`,
    [much],
  );

/** A client that asks for all of it, and reads nothing. */
async function deafClient(process: InboxProcess): Promise<Disposable> {
  const { hostname, port, pathname } = new URL(streamOf(process));
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.pause();
  const head = { host: "test", "last-event-id": fromTheFirst, ...readingKey };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${pathname} HTTP/1.1\r\n${lines.join("")}\r\n`);
  await until("it is followed", () => process.live.size > 0);
  return { [Symbol.dispose]: () => socket.destroy() };
}

test("for a client that does not read nothing more is read, and others are told as ever", async () => {
  await using t = await setup();
  const { statements, db } = counted(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  await writeMuch(t.db);
  await untilSettled(t.db); // What is held back is read again in every round.
  using _ = await deafClient(process);
  await using other = new InboxClient();
  await other.connect(streamOf(process, "u_other"), readingKey);
  // So many rounds would bring all of it, a hundred at a time.
  for (let round = 1; round <= much / 100 + 5; round++) {
    await insert(t.db, "u_other");
    process.signal();
    await until("the other is told", () => other.told.length >= round);
  }
  const big = statements.flat().filter(({ text }) => text.en.length > 1_000);
  expect(big.length).toBeGreaterThan(0);
  expect(big.length).toBeLessThan(much);
});

test("a client that takes nothing is cut, and whoever comes back in its place is told everything once", async () => {
  await using t = await setup();
  await writeMuch(t.db);
  {
    await using process = await inboxProcess({ url: t.url, db: t.open() }, { beatMs: 200 });
    using _ = await deafClient(process);
    await until("it is cut", () => process.live.size === 0);
  }
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await using client = new InboxClient();
  client.lastEventId = fromTheFirst;
  await client.connect(streamOf(process), readingKey);
  await until("it has caught up", () => client.told.length >= much);
  expect(new Set(client.ids).size).toBe(much);
});

test("a stop ends streams in order and says when to come back; nothing is lost to whoever does", async () => {
  await using t = await setup();
  await using client = new InboxClient();
  {
    await using process = await inboxProcess({ url: t.url, db: t.db });
    await client.connect(streamOf(process), readingKey);
    await t.write(1);
    process.signal();
    await until("the first is told", () => client.told.length === 1);
  }
  expect(await client.over).toBe("ended");
  expect(client.frames.at(-1)?.retry).toMatch(/^\d{3,4}$/);
  await t.write(2, 3);
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await client.connect(streamOf(process), readingKey);
  await until("the others are told", () => client.told.length >= 3);
  expect(client.ids).toEqual([fixedId(1), fixedId(2), fixedId(3)]);
});

test("a client that was cut before it was told anything misses nothing either", async () => {
  await using t = await setup();
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await t.write(1);
  await untilSettled(t.db);
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey, () => true); // The first frame says where the stream begins.
  await client.over;
  await t.write(2);
  await client.connect(streamOf(process), readingKey);
  await until("it is told", () => client.told.length > 0);
  expect(client.ids).toEqual([fixedId(2)]);
});

test("streams that are idle show that they live, and old ones have to come back", async () => {
  await using t = await setup();
  await using young = await inboxProcess({ url: t.url, db: t.db }, { beatMs: 20 });
  await using client = new InboxClient();
  await client.connect(streamOf(young), readingKey);
  await until(
    "three beats have come",
    () => client.frames.filter((frame) => Object.keys(frame).length === 0).length >= 3,
  );

  await using old = await inboxProcess({ url: t.url, db: t.db }, { beatMs: 20, ageMaxMs: 0 });
  await using another = new InboxClient();
  await another.connect(streamOf(old), readingKey);
  expect(await another.over).toBe("ended");
});

test("a lost wake-up costs a poll, and a database that is away for a while costs no stream", async () => {
  await using t = await setup();
  let away = false;
  const db = {
    query: (wish: never) => (away ? Promise.reject(new Error("away")) : t.db.query(wish)),
  } as unknown as Db;
  const errors: unknown[] = [];
  await using process = await inboxProcess({ url: t.url, db }, { pollMs: 50, onError: (error) => errors.push(error) });
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey);
  away = true;
  await t.write(1);
  await until("reading has failed", () => errors.length > 0);
  away = false;
  await until("it is told without a signal", () => client.told.length === 1);
});

test("a position that another database gave resets the client; after a restore from a dump nothing comes twice", async () => {
  await using t = await setup();
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await t.write(1, 2);
  // As a dump of a database that has seen many more transactions leaves them.
  await t.db.query(`update notifications set xid = '999999999999'`);
  await using client = new InboxClient();
  client.lastEventId = `999999999999.${fixedId(1)}`;
  await client.connect(streamOf(process), readingKey);
  await until("it is reset", () => client.frames.some(({ event }) => event === "reset"));
  expect(client.lastEventId).toBe("0.00000000-0000-0000-0000-000000000000");
  await client[Symbol.asyncDispose]();

  // docs/runbook.md
  await t.db.query(`update notifications set xid = '0' where xid >= pg_snapshot_xmin(pg_current_snapshot())`);
  await using again = new InboxClient();
  await again.connect(streamOf(process), readingKey);
  await until("it knows where it is", () => again.lastEventId !== undefined);
  expect(again.lastEventId).toBe(`0.${fixedId(2)}`);
  await t.write(3);
  process.signal();
  await until("what is new is told", () => again.told.length > 0);
  expect(again.ids).toEqual([fixedId(3)]);
});
