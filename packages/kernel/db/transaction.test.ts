import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test, vi } from "vitest";
import { openWire, testDatabase, until } from "../testing/index.ts";
import { afterCommit, CommitUnknown, type Db, isUnavailable, openDb, statement, transaction } from "./index.ts";

async function setup() {
  const t = await testDatabase({ sets: [] });
  await t.db.query(`create table public.things (id int primary key, n int not null)`);
  return Object.assign(t, { db: t.open({ schema: "public" }) });
}

test("a transaction commits all of its work or leaves no trace of it", async () => {
  await using t = await setup();
  await transaction(t.db, (tx) => tx.query(`insert into things values (1, 1)`));
  await expect(
    transaction(t.db, async (tx) => {
      await tx.query(`insert into things values (2, 2)`);
      throw new Error("no");
    }),
  ).rejects.toThrow("no");
  expect((await t.db.query(`select id from things`)).rows).toEqual([{ id: 1 }]);
});

test("an error that the work swallowed does not turn into a commit that never was", async () => {
  await using t = await setup();
  const swallowing = transaction(t.db, async (tx) => {
    await tx.query(`insert into things values (1, 1)`);
    await tx.query(`select 1 / 0`).catch(() => {});
  });
  await expect(swallowing).rejects.toThrow(/rolled back/);
});

test("where BEGIN fails nothing of the work is done, and its error is the one that is told", async () => {
  await using t = await setup();
  const cannotBegin = transaction(t.db, (tx) => tx.query(`insert into things values (1, 1)`), { lockTimeoutMs: -5 });
  await expect(cannotBegin).rejects.toThrow(/lock_timeout/);
  expect((await t.db.query(`select from things`)).rowCount).toBe(0);
  await transaction(t.db, (tx) => tx.query(`insert into things values (1, 1)`)); // The connection is as good as before.
});

test("behind a BEGIN that fails nothing is sent that would commit by itself", async () => {
  await using t = await setup();
  const db = t.open({ schema: "public", poolMax: 1 });
  db.on("acquire", (client) => {
    const query = client.query.bind(client) as (text: unknown, values: unknown) => Promise<unknown>;
    // As after a cancel: an error, a connection that goes on, and no transaction.
    const cancelled = (text: unknown, values: unknown) => query(text === "begin" ? "select 1 / 0" : text, values);
    Object.assign(client, { query: cancelled });
  });
  await expect(transaction(db, (tx) => tx.query(`insert into things values (1, 1)`))).rejects.toThrow(/division/);
  expect((await t.db.query(`select from things`)).rowCount).toBe(0);
});

test("a connection that is ended in the packet that opened it fails the statement, not the process", async () => {
  const message = (type: string, body: string) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(body.length + 4);
    return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
  };
  const welcome = [message("R", "\0\0\0\0"), message("Z", "I")];
  const farewell = message("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
  const server = createServer((socket) => socket.once("data", () => socket.end(Buffer.concat([...welcome, farewell]))));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const db = openDb({ url: `postgres://someone@127.0.0.1:${(server.address() as AddressInfo).port}/nowhere` });
  const uses = [() => transaction(db, (tx) => tx.query(`select 1`)), () => statement(db, { text: `select 1` })];
  for (const use of uses) await expect(use()).rejects.toSatisfy(isUnavailable);
  await db.end();
  server.close();
});

test("a deadlock is tried again until both transactions have committed", async () => {
  await using t = await setup();
  await t.db.query(`insert into things values (1, 0), (2, 0)`);
  const bothLocked = Promise.withResolvers<void>();
  let locked = 0;
  const bump = (first: number, second: number) =>
    transaction(t.db, async (tx) => {
      await tx.query(`update things set n = n + 1 where id = $1`, [first]);
      if (++locked === 2) bothLocked.resolve();
      await bothLocked.promise;
      await tx.query(`update things set n = n + 1 where id = $1`, [second]);
    });
  await Promise.all([bump(1, 2), bump(2, 1)]);
  expect(locked).toBeGreaterThan(2); // one of them ran again
  expect((await t.db.query(`select n from things order by id`)).rows).toEqual([{ n: 2 }, { n: 2 }]);
});

test.each(["request", "answer"] as const)(
  "a COMMIT whose %s is lost is neither a success nor a failure",
  async (lost) => {
    await using t = await setup();
    await using wire = await openWire(t.url);
    const db = t.open({ url: wire.url, schema: "public" });
    wire.cutNext("commit", lost);
    const hook = vi.fn();
    const unknown = transaction(db, async (tx) => {
      afterCommit(tx, hook);
      await tx.query(`insert into things values (1, 1)`);
    });
    await expect(unknown).rejects.toBeInstanceOf(CommitUnknown);
    expect(hook).not.toHaveBeenCalled();
    const { rowCount } = await t.db.query(`select from things`);
    expect(rowCount).toBe(lost === "answer" ? 1 : 0);
    await transaction(db, (tx) => tx.query(`select 1`)); // the pool has replaced the connection
  },
);

test("a statement whose answer is lost is as unknown as a commit; one that could not be sent is not", async () => {
  await using t = await setup();
  await using wire = await openWire(t.url);
  const db = t.open({ url: wire.url, schema: "public" });
  wire.cutNext("insert into things", "answer");
  const insert = { text: `insert into things values (1, 1)` };
  await expect(statement(db, insert)).rejects.toBeInstanceOf(CommitUnknown);
  const nobody = openDb({ url: "postgres://nobody@127.0.0.1:1/none" });
  const refused = await statement(nobody, insert).catch((error) => error);
  expect(refused).not.toBeInstanceOf(CommitUnknown);
  expect(isUnavailable(refused)).toBe(true);
});

test("connections that are ended from outside, idle or in use, fail a statement and never the process", async () => {
  await using t = await setup();
  const errors: Error[] = [];
  const db = t.open({ schema: "public", onConnectionError: (error) => errors.push(error) });
  const kill = () =>
    t.db.query(`select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid() and query not like '%terminate%'`);
  await db.query(`select 1`);
  await kill();
  await until("the idle connection is missed", () => errors.length > 0);
  const inUse = transaction(db, async (tx) => {
    await kill();
    await tx.query(`select 1`);
  });
  expect(isUnavailable(await inUse.catch((error) => error))).toBe(true);
  expect((await db.query(`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});

test("whole numbers come back whole, up to the last of 64 bits, also in arrays", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(
    `select 9223372036854775807::int8 as max, array[1, -9223372036854775808]::int8[] as list`,
  );
  expect(rows).toEqual([{ max: 9223372036854775807n, list: [1n, -9223372036854775808n] }]);
});

test("no statement and no idle transaction lasts for ever", async () => {
  await using t = await setup();
  const hasty = t.open({ schema: "public", statementTimeoutMs: 500 });
  expect((await hasty.query(`show statement_timeout`)).rows).toEqual([{ statement_timeout: "500ms" }]);
  // The server's own word wins, unless this process stands still for so long that the pool's second bound is past too.
  await expect(hasty.query(`select pg_sleep(60)`)).rejects.toThrow(/statement timeout|query read timeout/i);
  const db = t.open({ schema: "public", idleInTransactionTimeoutMs: 50 });
  const idle = transaction(db, async (tx) => {
    await until("the server ends the idle session", async () => {
      const { rowCount } = await t.db.query(`select from pg_stat_activity where pid = $1`, [
        (tx as unknown as { processID: number }).processID,
      ]);
      return rowCount === 0;
    });
    await tx.query(`insert into things values (9, 9)`);
  });
  expect(isUnavailable(await idle.catch((error) => error))).toBe(true);
});

test("a connection on which an answer is still to come is closed, and nobody else gets it", async () => {
  await using t = await setup();
  const runs = [
    (db: Db, text: string) => transaction(db, (tx) => tx.query(text)),
    (db: Db, text: string) => statement(db, { text }),
  ];
  const getsAnotherConnection = async (run: (typeof runs)[number]) => {
    await using wire = await openWire(t.url);
    const db = t.open({
      url: wire.url,
      schema: "public",
      statementTimeoutMs: 100,
      idleInTransactionTimeoutMs: 0,
      poolMax: 1,
    });
    await until("it is connected", () => db.query(`select 1`).then(Boolean, () => false));
    wire.deafen();
    await expect(run(db, `select 'first' as told`)).rejects.toThrow(/timeout|connection was lost/i);
    wire.listenAgain();
    let told: unknown;
    await until("the pool has a connection that answers", async () => {
      told = await run(db, `select 'second' as told`).then(
        ({ rows }) => rows[0]?.told,
        () => undefined,
      );
      return told !== undefined;
    });
    expect(told).toBe("second");
  };
  await Promise.all(runs.map(getsAnotherConnection));
});
