import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function setup() {
  const app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" }, bodyMaxBytes: 1_000 });
  const received: unknown[] = [];
  app.post(
    "/things/:name",
    {
      schema: {
        operationId: "makeThing",
        params: Type.Object({ name: Type.String() }),
        querystring: Type.Object({
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
          tag: Type.Optional(Type.String()),
        }),
        body: Type.Object({
          amount: Type.Integer(),
          note: Type.Optional(Type.String({ default: "none" })),
          parts: Type.Optional(Type.Array(Type.Object({ size: Type.Number() }))),
          labels: Type.Optional(Type.Record(Type.String(), Type.String())),
        }),
      },
    },
    async (request) => {
      received.push({ body: request.body, query: { ...request.query }, name: request.params.name });
      return { ok: true };
    },
  );
  app.get("/things/:name", { schema: { operationId: "getThing" } }, async () => ({ ok: true }));
  const send = (url: string, body: unknown, headers: Record<string, string> = {}) =>
    app.inject({
      method: "POST",
      url,
      headers: { "content-type": "application/json", ...headers },
      payload: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
  return { app, received, send, [Symbol.asyncDispose]: () => app.close() };
}

test("a route without a query schema rejects every query parameter", async () => {
  await using t = await setup();
  expect((await t.app.inject("/things/a")).statusCode).toBe(200);
  const refused = await t.app.inject("/things/a?limt=1");
  expect(refused.statusCode).toBe(400);
  expect(refused.json().errors).toEqual([{ field: "query.limt", detail: "is not a field that is known here" }]);
});

test("a handler gets the body unchanged: nothing converted, filled in or left out", async () => {
  await using t = await setup();
  const body = { amount: 1, parts: [{ size: 2.5 }], labels: { any: "thing" } };

  await t.send("/things/a%2Fb?limit=10&tag=7", body);

  expect(t.received).toEqual([{ body, query: { limit: 10, tag: "7" }, name: "a/b" }]);
});

test.each([
  ["text for a number", { amount: "5" }, "body.amount", "must be a whole number, not text"],
  ["a number for text", { amount: 1, note: 5 }, "body.note", "must be text, not 5"],
  ["a fraction", { amount: 1.5 }, "body.amount", "must be a whole number, not 1.5"],
  ["null", { amount: null }, "body.amount", "must be a whole number, not null"],
  ["a list for its one element", { amount: [1] }, "body.amount", "must be a whole number, not a list"],
  ["one element for a list", { amount: 1, parts: { size: 1 } }, "body.parts", "must be a list, not an object"],
  ["an unknown field", { amount: 1, role: "admin" }, "body.role", "is not a field that is known here"],
  [
    "an unknown field far down",
    { amount: 1, parts: [{ size: 1, x: 1 }] },
    "body.parts[0].x",
    "is not a field that is known here",
  ],
  ["no object", "[]", "body", "must be an object, not a list"],
  ["nothing", "null", "body", "must be an object, not nothing"],
])("a body with %s is rejected by field", async (_name, body, field, detail) => {
  await using t = await setup();

  const response = await t.send("/things/a", body);

  expect(response.statusCode).toBe(400);
  expect(response.json()).toMatchObject({ code: "invalid-request", errors: [{ field, detail }] });
  expect(t.received).toEqual([]);
});

test.each(["1e1", "0x10", "+5", "05", "5.0", " 5", "5%20", "-0", "9007199254740993", "", "five", "5&limit=6"])(
  "a whole number in a query is plain decimal digits: not %j",
  async (text) => {
    await using t = await setup();
    const response = await t.send(`/things/a?limit=${text.replace(" ", "%20").replace("+", "%2B")}`, { amount: 1 });
    expect(response.statusCode).toBe(400);
    expect(response.json().errors[0].field).toBe("query.limit");
  },
);

test("all errors in all parts of a request are reported at once", async () => {
  await using t = await setup();

  const response = await t.send("/things/a?limit=0&page=2", { amount: "x", more: 1 });

  expect(response.json().errors.map(({ field }: { field: string }) => field)).toEqual([
    "body.more",
    "body.amount",
    "query.page",
    "query.limit",
  ]);
});

test("no body causes a 5xx", async () => {
  await using t = await setup();
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json().map((text) => Buffer.from(text)),
  );
  await fc.assert(
    fc.asyncProperty(body, async (bytes) => {
      expect((await t.send("/things/a", Buffer.from(bytes))).statusCode).toBeLessThan(500);
    }),
    { numRuns: repetitions(300) },
  );
});

test("a hostile body gets a short response", async () => {
  await using t = await setup();
  const response = await t.send("/things/a", { amount: 1, parts: Array(200).fill(0) });
  expect(response.json().errors).toHaveLength(20);
  expect(response.json().detail).toContain("and 197 more");
});

test.each([
  ["/things/x%00y", "path.name", "invalid-request"],
  ["/things/x%1By", "path.name", "invalid-request"],
  ["/things/x?tag=a%00", "query.tag", "invalid-request"],
  ["/things/x?tag=a&tag=%08", "query.tag", "invalid-request"],
  ["/things/x?%00=a", 'query["\\u0000"]', "invalid-request"],
  ["/things/x?tag=%ff", undefined, "malformed-url"],
  ["/things/x?tag=%ed%a0%80", undefined, "malformed-url"],
  ["/things/x?tag=%", undefined, "malformed-url"],
  ["/things/%ff", undefined, "malformed-url"],
  ["/things/%c0%af", undefined, "malformed-url"],
  [`/things/${"x".repeat(256)}`, undefined, "malformed-url"],
  ["/things/x?__proto__=1", "query.__proto__", "invalid-request"],
  ["/things/x?tag[]=1", 'query["tag[]"]', "invalid-request"],
])("a URL follows the rules of a body: %s", async (url, field, code) => {
  await using t = await setup();

  const response = await t.send(url, { amount: 1 });

  expect(response.statusCode).toBe(400);
  expect(response.json().code).toBe(code);
  expect(response.json().errors?.[0].field).toBe(field);
  expect(response.headers["x-request-id"]).toBe(response.json().instance);
  expect(t.received).toEqual([]);
});

test.each([
  ["text/plain", '{"amount":1}'],
  ["application/x-www-form-urlencoded", "amount=1"],
  ["application/json; charset=iso-8859-1", '{"amount":1}'],
  ["application/json; charset=utf-16", '{"amount":1}'],
  ["application/vnd.api+json", '{"amount":1}'],
  ["application/json, text/plain", '{"amount":1}'],
  ["nonsense", '{"amount":1}'],
])("a body that is not JSON in UTF-8 is rejected with 415: %s", async (type, body) => {
  await using t = await setup();
  const response = await t.send("/things/a", body, { "content-type": type });
  expect(response.statusCode).toBe(415);
  expect(response.json().code).toBe("unsupported-media-type");
});

test.each([
  "application/json",
  "Application/JSON",
  "application/json; charset=utf-8",
  'application/json;charset="UTF-8"',
])("every spelling of JSON in UTF-8 is accepted: %s", async (type) => {
  await using t = await setup();
  expect((await t.send("/things/a", { amount: 1 }, { "content-type": type })).statusCode).toBe(200);
});

test("a compressed body is rejected", async () => {
  await using t = await setup();
  const response = await t.send("/things/a", Buffer.from([0x1f, 0x8b, 8, 0]), { "content-encoding": "gzip" });
  expect(response.statusCode).toBe(415);
});

test("a body one byte over the limit is rejected with 413", async () => {
  await using t = await setup();
  const fits = JSON.stringify({ amount: 1, note: "x".repeat(1_000 - '{"amount":1,"note":""}'.length) });
  expect((await t.send("/things/a", fits)).statusCode).toBe(200);
  const response = await t.send("/things/a", `${fits} `);
  expect(response.statusCode).toBe(413);
  expect(response.json().code).toBe("body-too-large");
});

test("an unknown path is 404, and its body is not read", async () => {
  await using t = await setup();
  const response = await t.send("/nothing/here", "{ not json");
  expect(response.statusCode).toBe(404);
  expect(response.headers["content-type"]).toMatch("application/problem+json");
  expect(response.json().code).toBe("not-found");
});

test("an unknown method is 405 with the allowed methods", async () => {
  await using t = await setup();
  const response = await t.app.inject({ method: "DELETE", url: "/things/a?x=1" });
  expect(response.statusCode).toBe(405);
  expect(response.headers.allow).toBe("GET, HEAD, POST");
  expect(response.json().code).toBe("method-not-allowed");
});

test("every response has a request id: the caller's own if it is well-formed", async () => {
  await using t = await setup();
  const idFor = async (given?: string) => {
    const response = await t.send("/things/a", { amount: 1 }, given === undefined ? {} : { "x-request-id": given });
    return response.headers["x-request-id"];
  };
  expect(await idFor("trace-me/1:2")).toBe("trace-me/1:2");
  for (const bad of [undefined, "", "two words", "x".repeat(65), "caf\u00e9", "a\tb"])
    expect(await idFor(bad)).toMatch(uuidV7);
});

test("no response may be cached or sniffed, or names the software", async () => {
  await using t = await setup();
  for (const response of [
    await t.send("/things/a", { amount: 1 }),
    await t.send("/nothing", {}),
    await t.send("/things/%ff", {}),
    await t.send("/things/a", "{"),
  ]) {
    expect(response.headers).toMatchObject({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
    expect(response.headers).not.toHaveProperty("x-powered-by");
    expect(response.headers).not.toHaveProperty("server");
  }
});

test("a schema with allOf keeps the app from starting", async () => {
  await using t = await setup();
  const body = Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })]);
  expect(() => t.app.post("/both", { schema: { operationId: "both", body } }, async () => ({}))).toThrow(
    "POST /both: the body uses allOf",
  );
});

test("an unknown Host is rejected first, on every path", async () => {
  const isOurHost = (host: string | undefined) => host === "ours.example";
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" }, isOurHost });
  app.get("/things", { schema: { operationId: "things" } }, async () => ({ ok: true }));
  for (const url of ["/things", "/nothing", "/openapi.json"]) {
    const refused = await app.inject({ url, headers: { host: "evil.example" } });
    expect([url, refused.statusCode, refused.json().code]).toEqual([url, 421, "unknown-host"]);
  }
  expect((await app.inject({ url: "/things", headers: { host: "ours.example" } })).statusCode).toBe(200);
});

test("an app without API documents has no /openapi.json", async () => {
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" }, openapi: false });
  expect((await app.inject("/openapi.json")).statusCode).toBe(404);
});
