import { type Engine, startEngine } from "@todoke/engines";
import { openDb } from "@todoke/kernel/db";
import { freePort } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openShell, runTodoke } from "../testing/command.ts";

let engine: Engine;
beforeAll(async () => {
  engine = await startEngine("postgres");
});
afterAll(() => engine[Symbol.asyncDispose]());

/** A database for one test. */
async function database() {
  const name = `cli_${crypto.randomUUID().replaceAll("-", "")}`;
  await onDatabase(engine.url, `create database ${name}`);
  return new URL(`/${name}`, engine.url).href;
}

async function onDatabase(url: string, sql: string) {
  const db = openDb({ url });
  return db.query(sql).finally(() => db.end());
}

test("all setting errors are printed at once, with exit code 2", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("serve counter", { COUNTER_PORT: "99999", COUNTER_STEP: "-1" });
  expect(code).toBe(2);
  expect(err.split("\n")).toEqual([
    `✗ COUNTER_PORT is "99999" and should be a port from 1 to 64535`,
    "✗ counter: set DATABASE_URL or COUNTER_DATABASE_URL to a PostgreSQL server",
    "✗ set EVENT_BUS_URL: without DATABASE_URL, services share no database for the bus",
    "✗ counter: COUNTER_STEP is not > 0",
    "",
  ]);
});

test("the password of an invalid URL is not printed", async () => {
  await using shell = openShell();
  const { code, out, err } = await shell.run("serve counter", { DATABASE_URL: "mysql://me:secret@db/x" });
  expect(code).toBe(2);
  expect(err).toContain("DATABASE_URL begins with mysql:// and should begin with postgres://");
  expect(out + err).not.toContain("secret");
});

test("an unknown service is rejected with a suggestion", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("serve conter");
  expect(code).toBe(2);
  expect(err).toContain(`There is no service "conter". Did you mean "counter"? The services are counter.`);
});

test("serve without names runs the configured services, and says which", async () => {
  await using shell = openShell();
  expect(await shell.run("serve")).toMatchObject({
    code: 2,
    err: expect.stringContaining("No service has a database: set DATABASE_URL to run all of them, or name"),
  });
  const env = { DATABASE_URL: "postgres://db.example/x", MATCHMAKING_TICKET_SECRET: "short" };
  const { code, err } = await runTodoke("serve", env);
  expect(code).toBe(2);
  const served = "account, entitlement, notification, matchmaking, points, orders";
  expect(err).toMatch(new RegExp(`^Serving ${served}; not configured: gateway-bff\n`));
  expect(err).toContain("matchmaking: MATCHMAKING_TICKET_SECRET");
  const one = await runTodoke("serve", { POINTS_DATABASE_URL: "postgres://db.example/x", POINTS_PORT: "x" });
  expect(one.err).toMatch(/^Serving points; not configured: account, /);
});

test("missing migrations prevent a start; migrate or --migrate runs them", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  const refused = await shell.run("serve counter", env);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(
    "Migrations are missing: counter (1 migration). Run `todoke migrate counter`, or start with",
  );

  const screen = shell.start("serve counter --migrate", env);
  await screen.untilPrinted(`http://127.0.0.1:${env.COUNTER_PORT}`);
  const answer = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/add`);
  expect(await answer.text()).toBe("1");
  screen.process.kill("SIGTERM");
  expect((await screen.ended).code).toBe(0);
});

test("an older build serves a database that a newer one has migrated, with a warning", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  await shell.run("migrate", env);
  await onDatabase(env.DATABASE_URL, "insert into counter.schema_migrations values ('counter', 2, 'later', 'x')");

  expect(await shell.run("migrate", env)).toMatchObject({ code: 1, err: expect.stringContaining("a newer build") });
  const screen = shell.start("serve counter", env);
  await screen.untilPrinted(`http://127.0.0.1:${env.COUNTER_PORT}`);
  await screen.untilPrinted("! counter could not be migrated");
  screen.process.kill("SIGTERM");
  expect((await screen.ended).code).toBe(0);
});

test("TODOKE_DEV=true is rejected without the embedded database, because it opens /debug", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()), TODOKE_DEV: "true" };
  const { code, out, err } = await shell.run("serve counter --migrate", env);
  expect([code, out]).toEqual([2, ""]);
  expect(err).toContain('TODOKE_DEV is "true", which opens /debug to every client: unset it.');
  expect(err).toContain("counter would use another");
  const schemas = await onDatabase(env.DATABASE_URL, "select from pg_namespace where nspname = 'counter'");
  expect(schemas.rowCount).toBe(0);
});

test("the error of a busy port names its variable", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database(), COUNTER_PORT: String(await freePort()) };
  const first = shell.start("serve counter --migrate", env);
  await first.untilPrinted("http://");
  const { code, err } = await shell.run("serve counter", env);
  expect(code).toBe(1);
  expect(err).toContain(
    `Port ${env.COUNTER_PORT} (counter) is in use: stop the process that listens on it, or set COUNTER_PORT`,
  );
});

test("migrate lists missing migrations, runs them once, and then finds none", async () => {
  await using shell = openShell();
  const env = { DATABASE_URL: await database() };
  const files = [
    "counter   counter/0001_counts.sql",
    ...["0001_bus", "0002_joins", "0003_retention_by_sweeps"].map((n) => `bus       bus-postgres/${n}.sql`),
  ];
  expect(await shell.run("migrate counter --dry-run", env)).toEqual({
    code: 0,
    out: `${files.map((file) => `  ${file}\n`).join("")}4 migrations would run; nothing was changed.\n`,
    err: "",
  });
  // Two at once: either may run a schema.
  const toWords = (line: string) => line.trim().replace(/ +/, " ");
  const both = await Promise.all([shell.run("migrate", env), shell.run("migrate", env)]);
  const ran = both.flatMap(({ out }) => out.split("\n").filter((line) => line.startsWith("  ")));
  expect(ran.map(toWords).sort()).toEqual(files.map(toWords).sort());
  expect((await shell.run("migrate", env)).out).toBe("Every schema is up to date.\n");
});

test("migrate creates the tables of a bus in PostgreSQL, and needs no setting but the databases", async () => {
  await using shell = openShell();
  const [own, bus] = [await database(), await database()];
  const { code, out } = await shell.run("migrate", {
    COUNTER_DATABASE_URL: own,
    EVENT_BUS_URL: bus,
    COUNTER_STEP: "-1",
  });
  expect({ code, last: out.split("\n").at(-2) }).toEqual({ code: 0, last: "4 migrations ran." });
  const exists = async (url: string) =>
    (await onDatabase(url, "select to_regclass('todoke_bus.bus_messages') is not null as exists")).rows[0].exists;
  expect([await exists(own), await exists(bus)]).toEqual([false, true]);
  expect(await shell.run("migrate", { COUNTER_DATABASE_URL: own, EVENT_BUS_URL: "nats://127.0.0.1:1" })).toMatchObject({
    code: 0,
    out: "Every schema is up to date.\n",
  });
});

test("an unavailable database is an error without a stack and without the password", async () => {
  await using shell = openShell();
  const url = `postgres://me:secret@127.0.0.1:${await freePort()}/x`;
  const { code, err } = await shell.run("migrate", { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(err).toMatch(/^✗ counter could not be migrated: connect ECONNREFUSED [^\n]*\n$/);
});
