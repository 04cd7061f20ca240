import { expect, test } from "vitest";
import { buildOpsApp, type OpsOptions, opsPortOf } from "./ops.ts";
import { Readiness } from "./readiness.ts";

async function setup(options: Partial<OpsOptions> = {}) {
  const deaf = { info() {}, warn() {} };
  // However late this process runs on a busy machine.
  const loopDelayMaxMs = 600_000;
  const stopping = new AbortController().signal;
  const readiness = new Readiness({ checks: {}, stopping, log: deaf, loopDelayMaxMs });
  const log = { level: "silent" } as const;
  const app = await buildOpsApp({
    title: "ops",
    version: "1",
    log,
    health: readiness,
    metrics: () => "todoke_up 1\n",
    ...options,
  });
  return {
    app,
    async [Symbol.asyncDispose]() {
      readiness[Symbol.dispose]();
      await app.close();
    },
  };
}

test("the ops listener serves metrics, health and the debug routes of the service", async () => {
  await using t = await setup({
    debug: (app) => {
      app.get("/debug/outbox", { schema: { operationId: "debugOutbox" } }, async () => ({ pending: 3 }));
    },
  });
  const metrics = await t.app.inject("/metrics");
  expect(metrics.body).toBe("todoke_up 1\n");
  expect(metrics.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect((await t.app.inject("/livez")).statusCode).toBe(200);
  expect((await t.app.inject("/readyz")).statusCode).toBe(200);
  expect((await t.app.inject("/debug/outbox")).json()).toEqual({ pending: 3 });
  expect((await t.app.inject("/debug/nothing")).json().code).toBe("not-found");
});

test("an error in /metrics is a 500, and the listener keeps serving", async () => {
  await using t = await setup({ metrics: async () => Promise.reject(new Error("no registry")) });
  expect((await t.app.inject("/metrics")).json()).toMatchObject({ code: "internal" });
  expect((await t.app.inject("/livez")).statusCode).toBe(200);
});

test("a route outside /debug/ keeps the ops listener from starting", async () => {
  const misplaced: OpsOptions["debug"] = (app) => {
    app.get("/v1/users", { schema: { operationId: "users" } }, async () => ({}));
  };
  await expect(setup({ debug: misplaced })).rejects.toThrow("/v1/users is not under /debug/");
});

test("the ops port is 1000 above the service port; port 0 stays 0", () => {
  expect(opsPortOf(8082)).toBe(9082);
  expect(opsPortOf(0)).toBe(0);
});
