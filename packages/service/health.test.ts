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
    logged: () => lines.map((line) => JSON.parse(line)),
    async [Symbol.asyncDispose]() {
      readiness[Symbol.dispose]();
      await app.close();
    },
  };
}

const fine: Check = async () => {};
const never: Check = () => new Promise(() => {});

test("a process is ready if every check passes, and lists each", async () => {
  await using t = await setup({ database: fine, bus: fine });
  const response = await t.ready();
  expect(response.statusCode).toBe(200);
  expect(response.headers["cache-control"]).toBe("no-store");
  expect(response.json()).toEqual({
    status: "ready",
    checks: ["event-loop", "database", "bus"].map((name) => ({ name, ok: true, ms: expect.any(Number) })),
  });
});

test("a process that serves requests while a part is away is degraded and says which", async () => {
  let away: string[] = ["bus"];
  await using t = await setup({ database: fine }, { degraded: () => away });
  const response = await t.ready();
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject({ status: "degraded", checks: [{}, { ok: true }, { name: "bus", ok: false }] });
  away = [];
  expect((await t.ready()).json()).toMatchObject({ status: "ready", checks: [{}, { name: "database" }] });
});

test("one failed check makes a process not ready; only the log has the error", async () => {
  const broken: Check = async () => {
    throw new Error("password authentication failed for user todoke");
  };
  await using t = await setup({ database: broken, bus: fine });

  const response = await t.ready();

  expect(response.statusCode).toBe(503);
  expect(response.json()).toMatchObject({
    status: "not-ready",
    checks: [{}, { name: "database", ok: false }, { name: "bus", ok: true }],
  });
  expect(response.body).not.toContain("password");
  expect(t.logged()).toMatchObject([
    { check: "database", msg: "not ready", err: { message: expect.stringContaining("password") } },
  ]);
  expect((await t.live()).statusCode).toBe(200);
});

test("a change of readiness is logged once, not at every probe", async () => {
  let broken = true;
  const check: Check = async () => {
    if (broken) throw new Error("down");
  };
  await using t = await setup({ bus: check });

  for (let probe = 0; probe < 3; probe++) await t.ready();
  broken = false;
  for (let probe = 0; probe < 3; probe++) await t.ready();

  expect(t.logged().map(({ msg }) => msg)).toEqual(["not ready", "ready again"]);
});

test("a check that hangs fails in time, and checks run in parallel", async () => {
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

test("parallel probes run the checks once", async () => {
  let runs = 0;
  const counted: Check = async () => {
    runs++;
    await new Promise((resolve) => setImmediate(resolve));
  };
  await using t = await setup({ database: counted });
  await t.live(); // The app has started, so that all arrive in one go.

  const responses = await Promise.all(Array.from({ length: 100 }, () => t.ready()));

  expect(responses.every(({ statusCode }) => statusCode === 200)).toBe(true);
  expect(runs).toBe(1);
  await t.ready();
  expect(runs).toBe(2);
});

test("a stopping process is live but not ready", async () => {
  await using t = await setup({ database: fine });
  t.stop();
  expect((await t.ready()).statusCode).toBe(503);
  expect((await t.ready()).json().status).toBe("stopping");
  expect((await t.live()).statusCode).toBe(200);
});

test("a process with a blocked event loop is not ready", async () => {
  await using t = await setup({}, { loopDelayMaxMs: 300 });
  await until("it is ready", async () => (await t.ready()).statusCode === 200);

  await until("it is not ready any more", async () => {
    const end = performance.now() + 600;
    while (performance.now() < end); // The loop stands still, as in a long computation.
    return (await t.ready()).statusCode === 503;
  });

  expect((await t.ready()).json().checks[0]).toMatchObject({ name: "event-loop", ok: false });
});
