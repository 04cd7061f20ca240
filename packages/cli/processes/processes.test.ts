import { type Engine, isPortFree, startEngine } from "@todoke/engines";
import { openDb } from "@todoke/kernel/db";
import { freePort, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openShell } from "../testing/command.ts";

let engine: Engine;
beforeAll(async () => {
  engine = await startEngine("postgres");
});
afterAll(() => engine[Symbol.asyncDispose]());

/** The counter in two processes. */
async function startCounter() {
  const name = `cli_${crypto.randomUUID().replaceAll("-", "")}`;
  const db = openDb({ url: engine.url });
  await db.query(`create database ${name}`).finally(() => db.end());
  const env = { DATABASE_URL: new URL(`/${name}`, engine.url).href, COUNTER_PORT: String(await freePort()) };
  const shell = openShell();
  const command = shell.start("serve counter --migrate --processes 2", env);
  const url = `http://127.0.0.1:${env.COUNTER_PORT}`;
  await command.untilPrinted(url);
  const get = (path: string) => fetch(`${url}${path}`);
  const pids = new Set<number>();
  const add = async () => pids.add(Number(await (await get("/pid")).text()));
  return {
    command,
    port: Number(env.COUNTER_PORT),
    get,
    /** The processes that respond, when two have. */
    async findPids(): Promise<readonly number[]> {
      pids.clear();
      await until("two processes respond", async () => (await add()).size === 2);
      return [...pids];
    },
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  };
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("a killed process comes back, requests go on meanwhile, nothing counted is lost, and SIGTERM drains every process", async () => {
  await using t = await startCounter();
  const before = await t.findPids();
  let responses = 0;
  let isDone = false;
  // A request that the killed process had is reset. None is left without an end.
  const add = () =>
    t.get("/add").then(
      (response) => Number(response.ok),
      () => 0,
    );
  const client = async () => {
    while (!isDone) responses += await add();
  };
  const clients = Promise.all(Array.from({ length: 8 }, client));
  await until("requests are counted", () => responses > 20);
  process.kill(before[0] as number, "SIGKILL");
  await t.command.untilPrinted("was killed by SIGKILL. It starts again in 0.1 s.");
  const after = await t.findPids();
  isDone = true;
  await clients;
  expect(after).toContain(before[1]);
  expect(after).not.toContain(before[0]);

  const held = await Promise.all([1, 2, 3, 4].map(() => t.get("/held")));
  t.command.process.kill("SIGTERM");
  const counts = await Promise.all(held.map((response) => response.text()));
  expect(Math.min(...counts.map(Number))).toBeGreaterThanOrEqual(responses);
  expect((await t.command.ended).code).toBe(0);
  expect(after.filter(isRunning)).toEqual([]);
});

test("a service that fails restarts its process only, and a second signal stops all of them at once with exit code 1", async () => {
  await using t = await startCounter();
  await t.get("/break").catch(() => {});
  await t.command.untilPrinted("counter stopped unexpectedly: the spring broke");
  await t.command.untilPrinted("exited with code 1. It starts again in 0.1 s.");
  const pids = await t.findPids();

  await Promise.all([t.get("/stuck"), t.get("/stuck")]);
  t.command.process.kill("SIGTERM");
  await t.command.untilPrinted("Press Ctrl-C again");
  const again = setInterval(() => t.command.process.kill("SIGTERM"), 100); // Soon after the first it counts as the same.
  expect((await t.command.ended).code).toBe(1);
  clearInterval(again);
  await until("no process is left", () => !pids.some(isRunning));
});

test("processes whose parent was killed drain by themselves and give up the port", async () => {
  await using t = await startCounter();
  const pids = await t.findPids();
  const held = await t.get("/held");
  t.command.process.kill("SIGKILL");
  expect(await held.text()).toBe("0");
  await until("no process is left", () => !pids.some(isRunning));
  expect(await isPortFree(t.port)).toBe(true);
});
