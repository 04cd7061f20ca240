/** Two real PostgreSQL servers in one URL, of which the second is promoted while the first, its former primary, still runs. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Engine, startEngine } from "@todoke/engines";
import { CommitUnknown, type Db, openDb, runStatement, transaction } from "@todoke/kernel/db";
import { longTimeouts, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkDatabase } from "./doctor/database.ts";

let folder: string;
let first: Engine;
let second: Engine;
let operator: Db;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "todoke-promoted-"));
  const [one, two] = [join(folder, "one"), join(folder, "two")];
  const settings = { fsync: "off" };
  await (await startEngine("postgres", { dir: one, settings }))[Symbol.asyncDispose]();
  await promisify(execFile)("cp", ["-a", one, two]); // With its owners.
  await writeFile(join(two, "data", "standby.signal"), "");
  [first, second] = (await Promise.all([one, two].map((dir) => startEngine("postgres", { dir, settings })))) as [
    Engine,
    Engine,
  ];
  operator = openDb({ url: first.url, ...longTimeouts });
  await operator.query(`create table items (id text primary key)`);
  // There is no such standby: every commit waits for it.
  await operator.query(`alter system set synchronous_standby_names = '*'`);
  await operator.query(`select pg_reload_conf()`);
}, 120_000);

afterAll(async () => {
  await operator?.end();
  await Promise.all([first, second].map((engine) => engine?.[Symbol.asyncDispose]()));
  await rm(folder, { recursive: true, force: true });
});

const openBoth = () =>
  openDb({ url: first.url.replace("@", `@${new URL(second.url).host},`), ...longTimeouts, poolMax: 2 });

const insert = (id: string) => ({ text: `insert into items values ($1)`, values: [id] });

const countWaiting = async (): Promise<number> =>
  (await operator.query(`select pid from pg_stat_activity where wait_event = 'SyncRep'`)).rowCount ?? 0;

test("a commit whose wait for the standby was cancelled is unknown, not done", async () => {
  const db = openBoth();
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const commands = [transaction(db, (tx) => tx.query(insert("in a transaction"))), runStatement(db, insert("alone"))];
  const outcomes = Promise.allSettled(commands);
  await until("both wait", async () => (await countWaiting()) === 2);
  await operator.query(`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: "rejected", reason: expect.any(CommitUnknown) });
  }
});

test("when the standby is promoted, hanging commits end as unknown, and the pool moves to the new primary", async () => {
  const db = openBoth();
  await using _ = { [Symbol.asyncDispose]: () => db.end() };
  const outcome = runStatement(db, insert("on the first")).catch((error: unknown) => error);
  await until("it waits", async () => (await countWaiting()) === 1);
  const promoting = openDb({ url: second.url, ...longTimeouts });
  await promoting.query(`select pg_promote()`);
  await promoting.query(`create table items (id text primary key)`);
  expect(await outcome).toBeInstanceOf(CommitUnknown);
  await runStatement(db, insert("on the second"));
  expect((await promoting.query(`select id from items`)).rows).toEqual([{ id: "on the second" }]);
  await promoting.end();

  const url = first.url.replace("@", `@${new URL(second.url).host},`);
  const findings = await checkDatabase({ name: "database", variable: "DATABASE_URL", url, services: 0 });
  expect(findings).toContainEqual({
    level: "fault",
    of: "database",
    says: expect.stringMatching(/^\S+ and \S+ accept writes: a standby was promoted while its former primary runs$/),
    todo: expect.stringContaining("Stop the former primary"),
  });
});
