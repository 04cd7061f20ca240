import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { isFree } from "../ports.ts";
import { freePort, openShell, type Screen } from "../testing/command.ts";

const ready = "Ready. Ctrl-C stops.";

/** Ports that nobody uses, and the address of the one service there is. */
async function site() {
  const [counter, postgres] = [await freePort(), await freePort()];
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${counter}${path}`)).text();
  return { env: { COUNTER_PORT: String(counter), POSTGRES_PORT: String(postgres) }, postgres, counter, ask };
}

async function stop(screen: Screen) {
  screen.process.kill("SIGTERM");
  return screen.ended;
}

test("it starts on an empty folder, and what was stored survives a kill -9 and a restart at once", async () => {
  await using shell = openShell();
  const { env, ask, postgres } = await site();
  const first = shell.start("dev", env);
  await first.shows(ready);
  await ask("/add");
  expect(await ask("/add")).toBe("2");
  first.process.kill("SIGKILL");
  await first.ended;

  const second = shell.start("dev", env);
  await second.shows(ready);
  expect(await ask("/count")).toBe("2");
  const { code, out } = await stop(second);
  expect(code).toBe(0);
  expect(out).not.toContain("migration");
  expect(await isFree(postgres)).toBe(true);
});

test("after a kill -9 it waits until the database of the killed run has stopped", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const first = shell.start("dev", env);
  await first.shows(ready);
  await ask("/add");
  const postmaster = Number.parseInt(
    readFileSync(join(shell.folder, ".todoke/postgres/data/postmaster.pid"), "utf8"),
    10,
  );
  process.kill(postmaster, "SIGSTOP");
  first.process.kill("SIGKILL");
  await first.ended;

  const second = shell.start("dev", env);
  await second.shows("The run before this one was killed; waiting for its database to stop …");
  process.kill(postmaster, "SIGCONT");
  await second.shows(ready);
  expect(await ask("/count")).toBe("1");
  expect((await stop(second)).code).toBe(0);
});

test("it ends by printing what runs where, and a line to paste", async () => {
  await using shell = openShell();
  const { env, counter, postgres } = await site();
  const screen = shell.start("dev", env);
  await screen.shows(ready);
  const { out, err } = await stop(screen);
  expect(out).toContain("Schemas: 1 migration ran\n");
  const database = `postgres://postgres@127.0.0.1:${postgres}/postgres`;
  expect(out).toContain(`  counter    ${`http://127.0.0.1:${counter}`.padEnd(database.length)}   counts\n`);
  expect(out).toContain(`  database   ${database}   PostgreSQL\n`);
  expect(out).toContain(`Try it:\n\ncurl -X POST http://127.0.0.1:${counter}/add\n`);
  expect(err).toBe("Stopping: finishing what is under way. Once more stops at once.\n");
});

test("a port in use is named, with the variable that changes it, before anything is started", async () => {
  await using shell = openShell();
  const { env, counter, postgres } = await site();
  await using _ = createServer().listen(counter, "127.0.0.1");
  const { code, err } = await shell.run("dev", env);
  expect(code).toBe(1);
  expect(err).toContain(`Port ${counter} (counter) is in use: stop what listens there, or set COUNTER_PORT`);
  expect(existsSync(join(shell.folder, ".todoke/postgres"))).toBe(false);

  const other = await site();
  await using __ = createServer().listen(postgres, "127.0.0.1");
  const again = await shell.run("dev", { ...other.env, POSTGRES_PORT: String(postgres) });
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("set POSTGRES_PORT to another port") });
});

test("a second one in the same folder says that there is a first", async () => {
  await using shell = openShell();
  const screen = shell.start("dev", (await site()).env);
  await screen.shows(ready);
  const { code, err } = await shell.run("dev", (await site()).env);
  expect(code).toBe(1);
  expect(err).toContain(`\`todoke dev\` already runs in this folder (process ${screen.process.pid})`);
  expect(err).toContain("Stop it first.");
  await stop(screen);
});

test("doctor looks at the database of the one that runs here, and takes its ports for granted", async () => {
  await using shell = openShell();
  const { env } = await site();
  const screen = shell.start("dev", env);
  await screen.shows(ready);
  const { code, out } = await shell.run("doctor", env);
  expect(out).toMatch(/✓ database +PostgreSQL 18/);
  expect(out).toMatch(/✓ counter +its schema is up to date\n/);
  expect(out).toContain(`used by the \`todoke dev\` that runs here (process ${screen.process.pid})`);
  expect(code).toBe(0);
  await stop(screen);
});

test("Ctrl-C finishes what is under way; a second one does not wait", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const patient = shell.start("dev", env);
  await patient.shows(ready);
  await ask("/add");
  const held = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/held`);
  patient.process.kill("SIGINT");
  expect(await held.text()).toBe("1");
  expect((await patient.ended).code).toBe(0);

  const hasty = shell.start("dev", env);
  await hasty.shows(ready);
  const stuck = await fetch(`http://127.0.0.1:${env.COUNTER_PORT}/stuck`);
  // Again and again: the first half second of it passes for the echo that a terminal and npm make of one Ctrl-C.
  await until("it has ended", () => !hasty.process.kill("SIGINT"));
  expect((await hasty.ended).code).toBe(1);
  await expect(stuck.text()).rejects.toThrow();
});

test("with DATABASE_URL it uses that server and starts none", async () => {
  await using engine = await startEngine("postgres");
  await using shell = openShell();
  const { env, postgres, ask } = await site();
  const screen = shell.start("dev", { ...env, DATABASE_URL: engine.url });
  await screen.shows(ready);
  expect(await ask("/add")).toBe("1");
  expect(await isFree(postgres)).toBe(true);
  const { code, out } = await stop(screen);
  expect(code).toBe(0);
  expect(out).not.toContain(new URL(engine.url).password);
});

test("a service that stops by itself takes the others down, and says why", async () => {
  await using shell = openShell();
  const { env, ask } = await site();
  const screen = shell.start("dev", env);
  await screen.shows(ready);
  await ask("/break");
  const { code, err } = await screen.ended;
  expect(code).toBe(1);
  expect(err).toBe("✗ counter stopped by itself: the spring broke\n");
});

test("a folder that cannot be written is told in one line", async () => {
  await using shell = openShell();
  writeFileSync(join(shell.folder, ".todoke"), "a file where the folder should be");
  const { code, err } = await shell.run("dev", (await site()).env);
  expect(code).toBe(1);
  expect(err).toMatch(/^✗ EEXIST: .*\.todoke'\n$/);
});

test("settings that cannot be are all told at once, and nothing is started", async () => {
  await using shell = openShell();
  const { code, err } = await shell.run("dev", {
    POSTGRES_PORT: "http",
    COUNTER_STEP: "0",
    EVENT_BUS_URL: "kafka://localhost",
  });
  expect(code).toBe(2);
  expect(err.split("\n")).toEqual([
    "✗ EVENT_BUS_URL begins with kafka:// and should begin with nats://, tls://, amqp://, amqps://, postgres://, postgresql://",
    `✗ POSTGRES_PORT is "http" and should be a port from 1 to 64535`,
    "✗ counter: COUNTER_STEP is not > 0",
    "",
  ]);
  expect(existsSync(join(shell.folder, ".todoke"))).toBe(false);
});
