import { buildHttpApp } from "@todoke/http";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { serveHealth } from "./health.ts";
import { type Check, Readiness, type ReadinessOptions } from "./readiness.ts";

async function setup(checks: Record<string, Check>, options: Partial<ReadinessOptions> = {}) {
  const lines: string[] = [];
  const log = { stream: { write: (line: string) => void lines.push(line) } };
  const app = await buildHttpApp({ title: "test", version: "1", log });
  const stop = new AbortController();
  // However late this process runs on a busy machine, unless the test is about that.
  const loopDelayMaxMs = 600_000;
  const readiness = new Readiness({ checks, stopping: stop.signal, log: app.log, loopDelayMaxMs, ...options });
  serveHealth(app, readiness);
  return {
    stop: () => stop.abort(),
    live: () => app.inject("/livez"),
    ready: () => app.inject("/readyz"),
    told: () => lines.map((line) => JSON.parse(line)),
    async [Symbol.asyncDispose]() {
      readiness[Symbol.dispose]();
      await app.close();
    },
  };
}

const fine: Check = async () => {};
const never: Check = () => new Promise(() => {});

test("a process whose checks pass is ready, and says so of each", async () => {
  await using t = await setup({ database: fine, bus: fine });
  const answer = await t.ready();
  expect(answer.statusCode).toBe(200);
  expect(answer.headers["cache-control"]).toBe("no-store");
  expect(answer.json()).toEqual({
    status: "ready",
    checks: ["event-loop", "database", "bus"].map((name) => ({ name, ok: true, ms: expect.any(Number) })),
  });
});

test("one failed check is enough not to be ready; what failed is told to the log only", async () => {
  const broken: Check = async () => {
    throw new Error("password authentication failed for user todoke");
  };
  await using t = await setup({ database: broken, bus: fine });

  const answer = await t.ready();

  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toMatchObject({
    status: "not-ready",
    checks: [{}, { name: "database", ok: false }, { name: "bus", ok: true }],
  });
  expect(answer.body).not.toContain("password");
  expect(t.told()).toMatchObject([
    { check: "database", msg: "not ready", err: { message: expect.stringContaining("password") } },
  ]);
  expect((await t.live()).statusCode).toBe(200);
});

test("the log hears of a change, not of every probe", async () => {
  let broken = true;
  const check: Check = async () => {
    if (broken) throw new Error("down");
  };
  await using t = await setup({ bus: check });

  for (let probe = 0; probe < 3; probe++) await t.ready();
  broken = false;
  for (let probe = 0; probe < 3; probe++) await t.ready();

  expect(t.told().map(({ msg }) => msg)).toEqual(["not ready", "ready again"]);
});

test("a check that does not answer is given up in time, and all are asked side by side", async () => {
  let deadline: AbortSignal | undefined;
  const late: Check = (signal) => {
    deadline = signal;
    return new Promise(() => {});
  };
  await using t = await setup({ a: late, b: never, c: never, d: fine }, { checkMaxMs: 50 });

  const { checks } = (await t.ready()).json();

  expect(checks.slice(1)).toMatchObject([{ ok: false }, { ok: false }, { ok: false }, { ok: true }]);
  expect(deadline?.aborted).toBe(true);
});

test("a check that throws at once is a failed check, not a 500", async () => {
  const rash: Check = () => {
    throw new Error("no client");
  };
  await using t = await setup({ a: rash });
  expect((await t.ready()).json()).toMatchObject({ status: "not-ready" });
});

test("however many ask at once, the checks run once", async () => {
  let runs = 0;
  const counted: Check = async () => {
    runs++;
    await new Promise((resolve) => setImmediate(resolve));
  };
  await using t = await setup({ database: counted });
  await t.live(); // The app has started, so that all arrive in one go.

  const answers = await Promise.all(Array.from({ length: 100 }, () => t.ready()));

  expect(answers.every(({ statusCode }) => statusCode === 200)).toBe(true);
  expect(runs).toBe(1);
  await t.ready();
  expect(runs).toBe(2);
});

test("a process that stops is live but not ready", async () => {
  await using t = await setup({ database: fine });
  t.stop();
  expect((await t.ready()).statusCode).toBe(503);
  expect((await t.ready()).json().status).toBe("stopping");
  expect((await t.live()).statusCode).toBe(200);
});

test("a process whose event loop is held up is not ready", async () => {
  await using t = await setup({}, { loopDelayMaxMs: 300 });
  await until("it is ready", async () => (await t.ready()).statusCode === 200);

  await until("it is not ready any more", async () => {
    const end = performance.now() + 600;
    while (performance.now() < end); // The loop stands still, as in a long computation.
    return (await t.ready()).statusCode === 503;
  });

  expect((await t.ready()).json().checks[0]).toMatchObject({ name: "event-loop", ok: false });
});
