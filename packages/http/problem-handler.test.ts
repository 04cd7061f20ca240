import { CommitUnknown } from "@todoke/kernel/db";
import { problem } from "@todoke/kernel/problem";
import { Type } from "typebox";
import { expect, test, vi } from "vitest";
import { buildHttpApp } from "./app.ts";

const skuUnknown = problem(404, "sku-unknown", "No such product");

/** An app with one route, which throws. */
async function answerTo(thrown: unknown) {
  const lines: string[] = [];
  const log = { stream: { write: (line: string) => void lines.push(line) } };
  await using app = await buildHttpApp({ title: "test", version: "1", log });
  const querystring = Type.Object({ code: Type.String() });
  app.get("/fails", { schema: { operationId: "fails", querystring } }, async () => {
    throw thrown;
  });
  const response = await app.inject({ url: "/fails?code=secret-in-query", headers: { "x-request-id": "request-1" } });
  return { response, lines, last: JSON.parse(lines.at(-1) ?? "{}") };
}

test("a Problem is sent as it is, with the id of the request", async () => {
  const { response, last } = await answerTo(
    skuUnknown("no product gold-pass", {
      fields: [{ field: "body.sku", detail: "is not sold" }],
      retryAfterSeconds: 7,
    }),
  );
  expect(response.statusCode).toBe(404);
  expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
  expect(response.headers["retry-after"]).toBe("7");
  expect(response.json()).toEqual({
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

test("a bug is a 500 without details for the caller; the log has everything", async () => {
  const root = new Error('duplicate key value violates unique constraint "users_pkey"');
  const { response, last } = await answerTo(
    new Error("granting gold-pass", { cause: new TypeError("reading x", { cause: root }) }),
  );

  expect(response.statusCode).toBe(500);
  expect(response.json()).toMatchObject({ code: "internal", instance: "request-1" });
  for (const secret of ["granting", "reading", "users_pkey", "TypeError", ".ts"])
    expect(response.body).not.toContain(secret);
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
    const { response, last } = await answerTo(thrown);
    expect(response.json()).toMatchObject({ status: 500, code: "internal" });
    expect(last.msg).toBe("failed");
  },
);

test("an error that throws when it is read is a 500 without details", async () => {
  const booby = Object.defineProperty(new Error("x"), "cause", {
    get() {
      throw new Error("a secret of ours");
    },
  });
  const { response } = await answerTo(booby);
  expect(response.json()).toMatchObject({ status: 500, code: "internal" });
  expect(response.body).not.toContain("secret");
});

test("a commit with an unknown outcome is 503 and says how to find out", async () => {
  const lost = new CommitUnknown(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  for (const thrown of [lost, new Error("granting gold-pass", { cause: lost })]) {
    const { response } = await answerTo(thrown);
    expect(response.statusCode).toBe(503);
    expect(response.headers["retry-after"]).toBe("1");
    expect(response.json()).toMatchObject({
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
])("an unavailable database is 503 with Retry-After: %s", async (_name, thrown) => {
  const { response, last } = await answerTo(thrown);
  expect(response.statusCode).toBe(503);
  expect(response.headers["retry-after"]).toBe("1");
  expect(response.json().code).toBe("unavailable");
  expect(last.err).toBeDefined();
});

test("a 4xx of a plugin stays a 4xx", async () => {
  const { response } = await answerTo(Object.assign(new Error("nope"), { code: "FST_SOME_PLUGIN", statusCode: 418 }));
  expect(response.statusCode).toBe(400);
  expect(response.json().code).toBe("bad-request");
});

test("an error of a call that we make is a 500, whatever its status", async () => {
  const { response } = await answerTo(
    Object.assign(new Error("not found"), { code: "ERR_DOWNSTREAM", statusCode: 404 }),
  );
  expect(response.json()).toMatchObject({ status: 500, code: "internal" });
});

test("a response that breaks its schema is a 500", async () => {
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" } });
  const schema = { operationId: "odd", response: { 200: { type: "object", properties: { n: { type: "integer" } } } } };
  app.get("/odd", { schema }, async () => ({ n: Number.NaN }) as never);
  expect((await app.inject("/odd")).json()).toMatchObject({ status: 500, code: "internal" });
});

test("a flood of rejections is a few lines with the number of requests", async () => {
  const lines: { readonly status: number; readonly count?: number; readonly msg: string }[] = [];
  const log = { stream: { write: (line: string) => void lines.push(JSON.parse(line)) } };
  await using app = await buildHttpApp({ title: "test", version: "1", log });
  const limited = problem(429, "limited", "Too many");
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

  const refusals = (status: number) => lines.filter((line) => line.msg === "refused" && line.status === status);
  // In one second one line of the first kind and a hundred of the second; then one each for the rest.
  expect(refusals(429).map(({ count }) => count)).toEqual([undefined, 299]);
  expect(refusals(404).length).toBe(101);
  expect(refusals(404).at(-1)?.count).toBe(200);
});
