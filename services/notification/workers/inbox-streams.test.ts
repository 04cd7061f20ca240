import { connect } from "node:net";
import type { Db } from "@todoke/kernel/db";
import { fixedId, repetitions, until } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StreamedNotification } from "../store/new-notifications.ts";
import {
  InboxClient,
  type InboxProcess,
  inboxProcess,
  openTransaction,
  readingKey,
  untilStable,
} from "../stream/testing.ts";
import { setup } from "../testing.ts";

const streamOf = ({ url }: { url: string }, userId = "u_123") => `${url}/v1/users/${userId}/inbox/stream`;

const insert = (by: Pick<Db, "query">, userId: string, text = "text") =>
  by.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     values (gen_random_uuid(), gen_random_uuid(), $1, 'EntitlementGranted', $2, now()) returning notification_id`,
    [userId, { en: text, ja: text }],
  );

/** Transactions that insert one after the other and commit in the given order. */
async function writeOvertaking(db: Db, userId: string, order: readonly number[]): Promise<void> {
  await using open = new AsyncDisposableStack();
  const transactions = [];
  for (const _ of order) {
    const transaction = open.use(await openTransaction(db));
    await insert(transaction, userId);
    transactions.push(transaction);
  }
  for (const index of order) await transactions[index]?.commit();
}

/** Records the rows of every statement that reads for streams. */
function recordStatements(db: Db) {
  const statements: Pick<StreamedNotification, "isStable" | "text">[][] = [];
  const query = async (request: { name?: string }) => {
    const result = await db.query(request as never);
    if (request.name === "select new notifications") statements.push((result as unknown as { rows: never[] }).rows);
    return result;
  };
  return { statements, db: { query } as unknown as Db };
}

test("a client that reconnects gets every notification once, in any order of commits", async () => {
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
      // A client that reconnects without an id gets new notifications only.
      await until("it has a position", () => client.lastEventId !== undefined);
      const writing = Promise.all(
        writers.map(async (db, writer) => {
          for (const order of orders.filter((_, index) => index % writers.length === writer)) {
            await writeOvertaking(db, userId, order);
            one.signal();
          }
        }),
      );
      const rows = orders.length * 4;
      const isComplete = () => client.received.length >= rows;
      // It reconnects to the two processes in turn, each time for a random number of events.
      for (let turn = 0; !isComplete(); turn++) {
        client.cut();
        await client.over;
        const enough = client.received.length + 1 + (cutAfter.next().value ?? 0);
        const isCut = () => client.received.length >= enough;
        await client.connect(streamOf(turn % 2 ? one : other, userId), readingKey, isCut);
        await until("the next are received", () => isCut() || isComplete());
      }
      await writing;
      const { rows: written } = await t.db.query(`select notification_id from notifications where user_id = $1`, [
        userId,
      ]);
      expect(client.ids.toSorted()).toEqual(written.map(({ notification_id }) => notification_id).toSorted());
    }),
    { numRuns: repetitions(6) },
  );
});

test("a notification committed after an open transaction began is streamed after it", async () => {
  await using t = await setup();
  const { statements, db } = recordStatements(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey);
  await using slow = await openTransaction(t.db);
  const first = await insert(slow, "u_123");
  const second = await insert(t.db, "u_123");
  process.signal();
  await until("the second was read and not sent", () => statements.some((rows) => rows.some((row) => !row.isStable)));
  expect(client.received).toEqual([]);
  await slow.commit();
  await until("both are received", () => client.received.length >= 2);
  expect(client.ids).toEqual([first, second].map(({ rows }) => rows[0].notification_id));
});

test("a notification that is not stable when it is read is streamed later without another wake-up", async () => {
  await using t = await setup();
  const { statements, db } = recordStatements(t.db);
  await using process = await inboxProcess({ url: t.url, db }, { pollMs: 3_600_000 });
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey);
  await using older = await openTransaction(t.db);
  await older.query(`select pg_current_xact_id()`); // From here on, rows of other transactions are not stable.
  await t.write(1);
  process.signal();
  const unstable = () => statements.filter((rows) => rows.some((row) => !row.isStable));
  // More often than the wake-ups of the connection and of the signal explain.
  await until("it is read again and again", () => unstable().length >= 4);
  await older.commit();
  await until("it is received", () => client.received.length > 0);
  expect(client.ids).toEqual([fixedId(1)]);
});

test("a thousand streams share one statement and hold no database connection", async () => {
  await using t = await setup();
  const { statements, db } = recordStatements(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  const users = Array.from({ length: 250 }, (_, n) => `u_${n}`);
  const clients = users.flatMap((userId) => [0, 1, 2, 3].map(() => ({ userId, client: new InboxClient() })));
  await using opened = new AsyncDisposableStack();
  for (const { userId, client } of clients) {
    opened.use(client);
    expect(await client.connect(streamOf(process, userId), readingKey)).toBe(200);
  }
  expect(process.streams.size).toBe(1_000);
  await until("no connection is in use", () => t.db.idleCount === t.db.totalCount);
  const before = statements.length;
  const sinceMs = performance.now();
  await t.db.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     select gen_random_uuid(), gen_random_uuid(), user_id, 'T', '{"en": "", "ja": ""}', now() from unnest($1::text[]) user_id`,
    [users],
  );
  process.signal();
  await until("every client has its notification", () => clients.every(({ client }) => client.received.length === 1));
  const after = statements.slice(before);
  const bringing = after.filter((rows) => rows.some(({ isStable }) => isStable));
  expect(bringing.map((rows) => rows.length)).toEqual([1_000]);
  expect(after.length).toBeLessThanOrEqual(2 + (performance.now() - sinceMs) / 100);
});

const firstPosition = `0.${fixedId(0)}`;

/** More than the socket buffers hold. */
const manyRows = 1_500;
const writeMany = (db: Db) =>
  db.query(
    `insert into notifications (notification_id, event_id, user_id, event_type, text, occurred_at)
     select gen_random_uuid(), gen_random_uuid(), 'u_123', 'T', jsonb_build_object('en', repeat('x', 20000), 'ja', ''), now()
       from generate_series(1, $1)`,
    [manyRows],
  );

/** A client that requests everything and reads nothing. */
async function connectStuckClient(process: InboxProcess): Promise<Disposable> {
  const { hostname, port, pathname } = new URL(streamOf(process));
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.pause();
  const head = { host: "test", "last-event-id": firstPosition, ...readingKey };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${pathname} HTTP/1.1\r\n${lines.join("")}\r\n`);
  await until("the stream is open", () => process.streams.size > 0);
  return { [Symbol.dispose]: () => socket.destroy() };
}

test("nothing more is read for a stuck client, and others are not delayed", async () => {
  await using t = await setup();
  const { statements, db } = recordStatements(t.db);
  await using process = await inboxProcess({ url: t.url, db });
  await writeMany(t.db);
  await untilStable(t.db); // Unstable rows are read again in every pass.
  using _ = await connectStuckClient(process);
  await using other = new InboxClient();
  await other.connect(streamOf(process, "u_other"), readingKey);
  // Enough passes to read everything, a hundred rows at a time.
  for (let pass = 1; pass <= manyRows / 100 + 5; pass++) {
    await insert(t.db, "u_other");
    process.signal();
    await until("the other client has it", () => other.received.length >= pass);
  }
  const big = statements.flat().filter(({ text }) => text.en.length > 1_000);
  expect(big.length).toBeGreaterThan(0);
  expect(big.length).toBeLessThan(manyRows);
});

test("a stuck client is disconnected, and gets everything once after it reconnects", async () => {
  await using t = await setup();
  await writeMany(t.db);
  {
    await using process = await inboxProcess({ url: t.url, db: t.open() }, { heartbeatMs: 200 });
    using _ = await connectStuckClient(process);
    await until("it is disconnected", () => process.streams.size === 0);
  }
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await using client = new InboxClient();
  client.lastEventId = firstPosition;
  await client.connect(streamOf(process), readingKey);
  await until("it has caught up", () => client.received.length >= manyRows);
  expect(new Set(client.ids).size).toBe(manyRows);
});

test("a stop ends streams with a retry delay, and clients that reconnect lose nothing", async () => {
  await using t = await setup();
  await using client = new InboxClient();
  {
    await using process = await inboxProcess({ url: t.url, db: t.db });
    await client.connect(streamOf(process), readingKey);
    await t.write(1);
    process.signal();
    await until("the first is received", () => client.received.length === 1);
  }
  expect(await client.over).toBe("ended");
  expect(client.frames.at(-1)?.retry).toMatch(/^\d{3,4}$/);
  await t.write(2, 3);
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await client.connect(streamOf(process), readingKey);
  await until("the others are received", () => client.received.length >= 3);
  expect(client.ids).toEqual([fixedId(1), fixedId(2), fixedId(3)]);
});

test("a client that is disconnected before its first notification misses nothing", async () => {
  await using t = await setup();
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await t.write(1);
  await untilStable(t.db);
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey, () => true); // The first frame has the position.
  await client.over;
  await t.write(2);
  await client.connect(streamOf(process), readingKey);
  await until("it is received", () => client.received.length > 0);
  expect(client.ids).toEqual([fixedId(2)]);
});

test("an idle stream gets heartbeats, and an old stream ends", async () => {
  await using t = await setup();
  await using young = await inboxProcess({ url: t.url, db: t.db }, { heartbeatMs: 20 });
  await using client = new InboxClient();
  await client.connect(streamOf(young), readingKey);
  await until(
    "three heartbeats have arrived",
    () => client.frames.filter((frame) => Object.keys(frame).length === 0).length >= 3,
  );

  await using old = await inboxProcess({ url: t.url, db: t.db }, { heartbeatMs: 20, ageMaxMs: 0 });
  await using another = new InboxClient();
  await another.connect(streamOf(old), readingKey);
  expect(await another.over).toBe("ended");
});

test("streams survive lost wake-ups and an unavailable database", async () => {
  await using t = await setup();
  let unavailable = false;
  const db = {
    query: (request: never) => (unavailable ? Promise.reject(new Error("unavailable")) : t.db.query(request)),
  } as unknown as Db;
  const errors: unknown[] = [];
  await using process = await inboxProcess({ url: t.url, db }, { pollMs: 50, onError: (error) => errors.push(error) });
  await using client = new InboxClient();
  await client.connect(streamOf(process), readingKey);
  unavailable = true;
  await t.write(1);
  await until("reading has failed", () => errors.length > 0);
  unavailable = false;
  await until("it is received without a signal", () => client.received.length === 1);
});

test("a position of another database resets the client, as after a restore from a dump", async () => {
  await using t = await setup();
  await using process = await inboxProcess({ url: t.url, db: t.db });
  await t.write(1, 2);
  // As in a dump of a database with many more transactions.
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
  await until("it has a position", () => again.lastEventId !== undefined);
  expect(again.lastEventId).toBe(`0.${fixedId(2)}`);
  await t.write(3);
  process.signal();
  await until("the new one is received", () => again.received.length > 0);
  expect(again.ids).toEqual([fixedId(3)]);
});
