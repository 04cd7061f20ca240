import { type Engine, startEngine } from "@todoke/engines";
import { openDb } from "@todoke/kernel/db";
import { freePort } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openShell } from "../testing/command.ts";

let engine: Engine;
beforeAll(async () => {
  engine = await startEngine("postgres");
});
afterAll(() => engine[Symbol.asyncDispose]());

/** A database that only this test knows. */
async function database() {
  const name = `cli_${crypto.randomUUID().replaceAll("-", "")}`;
  await onDatabase(engine.url, `create database ${name}`);
  return new URL(`/${name}`, engine.url).href;
}

async function onDatabase(url: string, sql: string) {
  const db = openDb({ url });
  return db.query(sql).finally(() => db.end());
}

test("everything that is wrong with the environment is told at once, with exit code 2", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("serve counter", { COUNTER_PORT: "99999", COUNTER_STEP: "-1" });
  expect(code).toBe(2);
  expect(err.split("\n")).toEqual([
    `✗ COUNTER_PORT is "99999" and should be a port from 1 to 64535`,
    "✗ counter: set DATABASE_URL or COUNTER_DATABASE_URL to a PostgreSQL server",
    "✗ set EVENT_BUS_URL: without DATABASE_URL there is no database that all services share",
    "✗ counter: COUNTER_STEP is not > 0",
    "",
  ]);
});

test("a password in a URL that is wrong otherwise is not printed", async () => {
  await using shell = openShell();
  const { code, out, err } = await shell.run("serve counter", { DATABASE_URL: "mysql://me:secret@db/x" });
  expect(code).toBe(2);
  expect(err).toContain("DATABASE_URL begins with mysql:// and should begin with postgres://");
  expect(out + err).not.toContain("secret");
});

test("services that do not exist are named, and so is what was probably meant", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("serve conter");
  expect(code).toBe(2);
  expect(err).toContain(`There is no service "conter"; did you mean counter. The services are counter.`);
  expect(await shell.run("serve")).toMatchObject({
    code: 2,
    err: expect.stringContaining("Say which services to run."),
  });
});

test("a schema that is not up to date stops the start; migrate or --migrate lets it through", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  const refused = await shell.run("serve counter", env);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("Not up to date: counter (1 migration). Run `todoke migrate counter`, or start with");

  const screen = shell.start("serve counter --migrate", env);
  await screen.shows(`http://127.0.0.1:${env.COUNTER_PORT}`);
  const answer = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/add`);
  expect(await answer.text()).toBe("1");
  screen.process.kill("SIGTERM");
  expect((await screen.ended).code).toBe(0);
});

test("an older build still serves a database that a newer one has migrated, and says so", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  await shell.run("migrate", env);
  await onDatabase(env.DATABASE_URL, "insert into counter.schema_migrations values ('counter', 2, 'later', 'x')");

  expect(await shell.run("migrate", env)).toMatchObject({ code: 1, err: expect.stringContaining("a newer build") });
  const screen = shell.start("serve counter", env);
  await screen.shows(`http://127.0.0.1:${env.COUNTER_PORT}`);
  await screen.shows("! counter could not be migrated");
  screen.process.kill("SIGTERM");
  expect((await screen.ended).code).toBe(0);
});

test("TODOKE_DEV=true is refused: it would open /debug on a database that is not the embedded one", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()), TODOKE_DEV: "true" };
  const { code, out, err } = await shell.run("serve counter --migrate", env);
  expect([code, out]).toEqual([2, ""]);
  expect(err).toContain('TODOKE_DEV is "true", which opens /debug to everybody: unset it.');
  expect(err).toContain("counter would use another");
  const schemas = await onDatabase(env.DATABASE_URL, "select from pg_namespace where nspname = 'counter'");
  expect(schemas.rowCount).toBe(0);
});

test("a port in use is told with its variable", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  const first = shell.start("serve counter --migrate", env);
  await first.shows("http://");
  const { code, err } = await shell.run("serve counter", env);
  expect(code).toBe(1);
  expect(err).toContain(`Port ${env.COUNTER_PORT} (counter) is in use: stop what listens there, or set COUNTER_PORT`);
});

test("migrate says what it would run, runs it once, and then has nothing to do", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database() };
  expect(await shell.run("migrate counter --dry-run", env)).toEqual({
    code: 0,
    out: "  counter   counter/0001_counts.sql\n1 migration would run; nothing was changed.\n",
    err: "",
  });
  const [one, other] = await Promise.all([shell.run("migrate", env), shell.run("migrate", env)]);
  expect([one.out, other.out].sort()).toEqual([
    "  counter   counter/0001_counts.sql\n1 migration ran.\n",
    "Nothing to do: every schema is up to date.\n",
  ]);
});

test("a database that cannot be reached is told as such, without a stack or a password", async () => {
  await using shell = openShell();
  const url = `postgres://me:secret@127.0.0.1:${await freePort()}/x`;
  const { code, err } = await shell.run("migrate", { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(err).toMatch(/^✗ counter could not be migrated: connect ECONNREFUSED [^\n]*\n$/);
});
