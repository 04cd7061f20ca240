import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test, vi } from "vitest";
import { openFaultProxy, testDatabase, until } from "../testing/index.ts";
import { afterCommit, CommitUnknown, type Db, isUnavailable, openDb, runStatement, transaction } from "./index.ts";

const setup = () =>
  testDatabase({ schema: "public", sets: [], tables: `create table things (id int primary key, n int not null)` });

test("a transaction commits all of its work or leaves no trace", async () => {
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

test("a swallowed statement error fails the transaction", async () => {
  await using t = await setup();
  const swallowing = transaction(t.db, async (tx) => {
    await tx.query(`insert into things values (1, 1)`);
    await tx.query(`select 1 / 0`).catch(() => {});
  });
  await expect(swallowing).rejects.toThrow(/rolled back/);
});

test("if BEGIN fails, the work does not run and its error is thrown", async () => {
  await using t = await setup();
  const cannotBegin = transaction(t.db, (tx) => tx.query(`insert into things values (1, 1)`), { lockTimeoutMs: -5 });
  await expect(cannotBegin).rejects.toThrow(/lock_timeout/);
  expect((await t.db.query(`select from things`)).rowCount).toBe(0);
  await transaction(t.db, (tx) => tx.query(`insert into things values (1, 1)`)); // The connection can be reused.
});

test("no statement is sent after a cancelled BEGIN, where it would autocommit", async () => {
  await using t = await setup();
  const db = t.open({ schema: "public", poolMax: 1 });
  db.on("acquire", (client) => {
    const query = client.query.bind(client) as (text: unknown, values: unknown) => Promise<unknown>;
    // As after a cancel: an error, a live connection and no transaction.
    const cancelled = (text: unknown, values: unknown) => query(text === "begin" ? "select 1 / 0" : text, values);
    Object.assign(client, { query: cancelled });
  });
  await expect(transaction(db, (tx) => tx.query(`insert into things values (1, 1)`))).rejects.toThrow(/division/);
  expect((await t.db.query(`select from things`)).rowCount).toBe(0);
});

test("a connection ended in its first packet fails the statement, not the process", async () => {
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
  const uses = [() => transaction(db, (tx) => tx.query(`select 1`)), () => runStatement(db, { text: `select 1` })];
  for (const use of uses) await expect(use()).rejects.toSatisfy(isUnavailable);
  await db.end();
  server.close();
});

test("deadlocked transactions are retried until both have committed", async () => {
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
  expect(locked).toBeGreaterThan(2); // One of them ran again.
  expect((await t.db.query(`select n from things order by id`)).rows).toEqual([{ n: 2 }, { n: 2 }]);
});

test.each(["request", "answer"] as const)(
  "a COMMIT whose %s is lost is neither a success nor a failure",
  async (lost) => {
    await using t = await setup();
    await using proxy = await openFaultProxy(t.url);
    const db = t.open({ url: proxy.url, schema: "public" });
    proxy.cutNext("commit", lost);
    const hook = vi.fn();
    const unknown = transaction(db, async (tx) => {
      afterCommit(tx, hook);
      await tx.query(`insert into things values (1, 1)`);
    });
    await expect(unknown).rejects.toBeInstanceOf(CommitUnknown);
    expect(hook).not.toHaveBeenCalled();
    const { rowCount } = await t.db.query(`select from things`);
    expect(rowCount).toBe(lost === "answer" ? 1 : 0);
    await transaction(db, (tx) => tx.query(`select 1`)); // The pool has replaced the connection.
  },
);

test("a statement whose response is lost is CommitUnknown; one that was not sent is not", async () => {
  await using t = await setup();
  await using proxy = await openFaultProxy(t.url);
  const db = t.open({ url: proxy.url, schema: "public" });
  proxy.cutNext("insert into things", "answer");
  const insert = { text: `insert into things values (1, 1)` };
  await expect(runStatement(db, insert)).rejects.toBeInstanceOf(CommitUnknown);
  const unreachable = openDb({ url: "postgres://nobody@127.0.0.1:1/none" });
  const refused = await runStatement(unreachable, insert).catch((error) => error);
  expect(refused).not.toBeInstanceOf(CommitUnknown);
  expect(isUnavailable(refused)).toBe(true);
});

test("terminated connections, idle or in use, fail a statement and never the process", async () => {
  await using t = await setup();
  const errors: Error[] = [];
  const db = t.open({ schema: "public", onConnectionError: (error) => errors.push(error) });
  const kill = () =>
    t.db.query(`select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid() and query not like '%terminate%'`);
  await db.query(`select 1`);
  await kill();
  await until("the lost idle connection is reported", () => errors.length > 0);
  const inUse = transaction(db, async (tx) => {
    await kill();
    await tx.query(`select 1`);
  });
  expect(isUnavailable(await inUse.catch((error) => error))).toBe(true);
  expect((await db.query(`select 1 as one`)).rows).toEqual([{ one: 1 }]);
});

test("64-bit integers are read without loss, also in arrays", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(
    `select 9223372036854775807::int8 as max, array[1, -9223372036854775808]::int8[] as list`,
  );
  expect(rows).toEqual([{ max: 9223372036854775807n, list: [1n, -9223372036854775808n] }]);
});

test("statements and idle transactions have a timeout", async () => {
  await using t = await setup();
  const db500 = t.open({ schema: "public", statementTimeoutMs: 500 });
  expect((await db500.query(`show statement_timeout`)).rows).toEqual([{ statement_timeout: "500ms" }]);
  // The server's timeout fires first, unless this process stalls past the pool's own timeout.
  await expect(db500.query(`select pg_sleep(60)`)).rejects.toThrow(/statement timeout|query read timeout/i);
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

test("a connection with a pending response is closed and not reused", async () => {
  await using t = await setup();
  const runs = [
    (db: Db, text: string) => transaction(db, (tx) => tx.query(text)),
    (db: Db, text: string) => runStatement(db, { text }),
  ];
  const usesAnotherConnection = async (run: (typeof runs)[number]) => {
    await using proxy = await openFaultProxy(t.url);
    const db = t.open({
      url: proxy.url,
      schema: "public",
      statementTimeoutMs: 100,
      idleInTransactionTimeoutMs: 0,
      poolMax: 1,
    });
    await until("it is connected", () => db.query(`select 1`).then(Boolean, () => false));
    proxy.dropResponses();
    await expect(run(db, `select 'first' as reply`)).rejects.toThrow(/timeout|connection was lost/i);
    proxy.stopDropping();
    let reply: unknown;
    await until("the pool has a working connection", async () => {
      reply = await run(db, `select 'second' as reply`).then(
        ({ rows }) => rows[0]?.reply,
        () => undefined,
      );
      return reply !== undefined;
    });
    expect(reply).toBe("second");
  };
  await Promise.all(runs.map(usesAnotherConnection));
});
