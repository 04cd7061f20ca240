import { CommitUnknown } from "@todoke/kernel/db";
import { problem } from "@todoke/kernel/problem";
import { Type } from "typebox";
import { expect, test, vi } from "vitest";
import { buildHttpApp } from "./app.ts";

const skuUnknown = problem({ code: "sku-unknown", status: 404, title: "No such product" });

/** An app with one route, which throws. */
async function answerTo(thrown: unknown) {
  const lines: string[] = [];
  const log = { stream: { write: (line: string) => void lines.push(line) } };
  await using app = await buildHttpApp({ title: "test", version: "1", log });
  const querystring = Type.Object({ code: Type.String() });
  app.get("/fails", { schema: { operationId: "fails", querystring } }, async () => {
    throw thrown;
  });
  const answer = await app.inject({ url: "/fails?code=secret-in-query", headers: { "x-request-id": "request-1" } });
  return { answer, lines, last: JSON.parse(lines.at(-1) ?? "{}") };
}

test("a Problem is sent as it is, with the id of the request", async () => {
  const { answer, last } = await answerTo(
    skuUnknown("no product gold-pass", {
      fields: [{ field: "body.sku", detail: "is not sold" }],
      retryAfterSeconds: 7,
    }),
  );
  expect(answer.statusCode).toBe(404);
  expect(answer.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
  expect(answer.headers["retry-after"]).toBe("7");
  expect(answer.json()).toEqual({
    type: "https://todoke.dev/problems/sku-unknown",
    title: "No such product",
    status: 404,
    code: "sku-unknown",
    detail: "no product gold-pass",
    errors: [{ field: "body.sku", detail: "is not sold" }],
    instance: "request-1",
  });
  expect(last).toMatchObject({
    msg: "refused",
    code: "sku-unknown",
    request_id: "request-1",
    req: { route: "/fails" },
  });
});

test("a bug is a 500 that tells the caller nothing and the log everything", async () => {
  const root = new Error('duplicate key value violates unique constraint "users_pkey"');
  const { answer, last } = await answerTo(
    new Error("granting gold-pass", { cause: new TypeError("reading x", { cause: root }) }),
  );

  expect(answer.statusCode).toBe(500);
  expect(answer.json()).toMatchObject({ code: "internal", instance: "request-1" });
  for (const secret of ["granting", "reading", "users_pkey", "TypeError", ".ts"])
    expect(answer.body).not.toContain(secret);
  expect(last.msg).toBe("failed");
  expect(last.err).toMatchObject({
    message: "granting gold-pass",
    causes: [{ type: "TypeError", message: "reading x", causes: [{ message: root.message }] }],
  });
  expect(last.err.stack).toContain("problem-handler.test.ts");
});

test.each([["text"], [undefined], [null], [42], [{ statusCode: 400 }], [Object.create(null)]])(
  "whatever is thrown, even %j, is a 500",
  async (thrown) => {
    const { answer, last } = await answerTo(thrown);
    expect(answer.json()).toMatchObject({ status: 500, code: "internal" });
    expect(last.msg).toBe("failed");
  },
);

test("an error that cannot even be looked at is a 500 that tells nothing", async () => {
  const booby = Object.defineProperty(new Error("x"), "cause", {
    get() {
      throw new Error("a secret of ours");
    },
  });
  const { answer } = await answerTo(booby);
  expect(answer.json()).toMatchObject({ status: 500, code: "internal" });
  expect(answer.body).not.toContain("secret");
});

test("a commit whose outcome is not known is 503, and says how to find out", async () => {
  const lost = new CommitUnknown(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  for (const thrown of [lost, new Error("granting gold-pass", { cause: lost })]) {
    const { answer } = await answerTo(thrown);
    expect(answer.statusCode).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
    expect(answer.json()).toMatchObject({
      code: "outcome-unknown",
      detail: expect.stringContaining("same Idempotency-Key"),
    });
  }
});

test.each([
  ["refused connections", Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })],
  ["a server that starts", Object.assign(new Error("starting up"), { severity: "FATAL", code: "57P03" })],
  ["no connection left", Object.assign(new Error("too many clients"), { severity: "FATAL", code: "53300" })],
  ["a pool without a free client", new Error("timeout exceeded when trying to connect")],
  ["a wrapped one", new Error("reading points", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) })],
])("a database that cannot be reached is 503 with Retry-After: %s", async (_name, thrown) => {
  const { answer, last } = await answerTo(thrown);
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["retry-after"]).toBe("1");
  expect(answer.json().code).toBe("unavailable");
  expect(last.err).toBeDefined();
});

test("what a plugin refuses with a 4xx of its own is never a 5xx", async () => {
  const { answer } = await answerTo(Object.assign(new Error("nope"), { code: "FST_SOME_PLUGIN", statusCode: 418 }));
  expect(answer.statusCode).toBe(400);
  expect(answer.json().code).toBe("bad-request");
});

test("what went wrong with a call of our own is not the caller's fault, whatever its status", async () => {
  const { answer } = await answerTo(Object.assign(new Error("not found"), { code: "ERR_DOWNSTREAM", statusCode: 404 }));
  expect(answer.json()).toMatchObject({ status: 500, code: "internal" });
});

test("an answer that breaks its own schema is a 500, not half an answer", async () => {
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" } });
  const schema = { operationId: "odd", response: { 200: { type: "object", properties: { n: { type: "integer" } } } } };
  app.get("/odd", { schema }, async () => ({ n: Number.NaN }) as never);
  expect((await app.inject("/odd")).json()).toMatchObject({ status: 500, code: "internal" });
});

test("a flood of refusals is a few lines, which say how many requests they stand for", async () => {
  const lines: { readonly status: number; readonly count?: number; readonly msg: string }[] = [];
  const log = { stream: { write: (line: string) => void lines.push(JSON.parse(line)) } };
  await using app = await buildHttpApp({ title: "test", version: "1", log });
  const limited = problem({ code: "limited", status: 429, title: "Too many" });
  app.get("/limited", { schema: { operationId: "limited" } }, async () => {
    throw limited("wait");
  });
  await app.ready();
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    for (const url of ["/limited", "/nothing"]) await Promise.all(Array.from({ length: 300 }, () => app.inject(url)));
  } finally {
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
  }

  const told = (status: number) => lines.filter((line) => line.msg === "refused" && line.status === status);
  // In one second one line of the first kind and a hundred of the second; then one each for the rest.
  expect(told(429).map(({ count }) => count)).toEqual([undefined, 299]);
  expect(told(404).length).toBe(101);
  expect(told(404).at(-1)?.count).toBe(200);
});
