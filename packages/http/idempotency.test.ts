import { once } from "@todoke/kernel/idempotency";
import { testDatabase } from "@todoke/kernel/testing";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { IdempotencyHeaders, idempotencyKey, sendResponse } from "./idempotency.ts";
import { RawConnection } from "./testing/raw-http.ts";

const body = Type.Object({ amount: Type.Integer() });

/** A command that does no more than count how often it took effect, on a database of its own. */
async function setup() {
  await using stack = new AsyncDisposableStack();
  const { db } = stack.use(await testDatabase());
  const app = stack.adopt(await buildHttpApp({ title: "test", version: "1", log: { level: "silent" } }), (a) =>
    a.close(),
  );
  let effects = 0;
  for (const [operationId, path] of [
    ["add", "/points/:user/add"],
    ["sub", "/points/:user/sub"],
  ] as const) {
    app.post(path, { schema: { operationId, headers: IdempotencyHeaders, body } }, async (request, reply) => {
      const key = idempotencyKey(request, String(request.headers["x-caller"] ?? "alice"));
      const work = async () => ({ status: 201, body: { effect: ++effects, amount: request.body.amount } });
      // No request here may time out, however slow the machine is.
      return sendResponse(reply, await once(db, key, work, { waitMs: 60_000 }));
    });
  }
  const cleanup = stack.move();
  return {
    get effects() {
      return effects;
    },
    send: (key: string, { amount = 1, path = "/points/u-1/add", caller = "alice" } = {}) =>
      app.inject({
        method: "POST",
        url: path,
        headers: { "x-caller": caller, "idempotency-key": key },
        payload: { amount },
      }),
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  };
}

test("the same key with other path parameters is a conflict without effect", async () => {
  await using t = await setup();
  expect((await t.send("k")).statusCode).toBe(201);
  const other = await t.send("k", { path: "/points/u-2/add" });
  expect([other.statusCode, other.json().code, t.effects]).toEqual([409, "idempotency-conflict", 1]);
});

test("64 parallel requests with one key: one effect, 64 identical responses", async () => {
  await using t = await setup();

  const responses = await Promise.all(Array.from({ length: 64 }, () => t.send("key-1")));

  expect(t.effects).toBe(1);
  expect(new Set(responses.map((a) => `${a.statusCode} ${a.headers["content-type"]} ${a.body}`)).size).toBe(1);
  expect(
    responses.map((a) => a.headers["idempotency-replayed"]).filter((replayed) => replayed === undefined),
  ).toHaveLength(1);
});

test("the same key with another body is a conflict; of another caller or route it is another key", async () => {
  await using t = await setup();
  await t.send("key-1");

  expect((await t.send("key-1", { amount: 2 })).json()).toMatchObject({ status: 409, code: "idempotency-conflict" });
  expect((await t.send("key-1", { caller: "bob" })).json()).toMatchObject({ effect: 2 });
  expect((await t.send("key-1", { path: "/points/u-1/sub" })).json()).toMatchObject({ effect: 3 });
});

test("a key in quotes is the key inside them", async () => {
  await using t = await setup();
  const first = await t.send('a"\\b');
  for (const [bare, quoted] of [
    ["key-1", '"key-1"'],
    ['a"\\b', '"a\\"\\\\b"'],
  ] as const) {
    expect((await t.send(quoted)).json()).toEqual((await t.send(bare)).json());
  }
  expect((await t.send('"a\\"\\\\b"')).body).toBe(first.body);
});

/** The key that the edge makes of a header, without a command behind it. */
async function keyOf(header: string | undefined) {
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" } });
  const querystring = Type.Object({ x: Type.String() });
  app.post(
    "/keys",
    { schema: { operationId: "readKey", headers: IdempotencyHeaders, querystring } },
    async (request) => {
      const { scope, key } = idempotencyKey(request, "alice");
      return { scope, key };
    },
  );
  const headers = header === undefined ? {} : { "idempotency-key": header };
  return (await app.inject({ method: "POST", url: "/keys?x=1", headers })).json();
}

test("a missing key has its own problem code", async () => {
  expect(await keyOf(undefined)).toMatchObject({
    status: 400,
    code: "idempotency-key-missing",
    errors: [{ field: "header.idempotency-key", detail: "is missing" }],
  });
});

test.each([
  ["nothing", ""],
  ["only a space", " "],
  ["a space inside", "two words"],
  ["256 characters", "k".repeat(256)],
  ["256 characters in quotes", `"${"k".repeat(256)}"`],
  ["a letter past ASCII", "cl\u00e9"],
  ["a tab", "a\tb"],
  ["two headers, as Node joins them", "key-1, key-2"],
  ["a list of strings", '"key-1", "key-2"'],
  ["a list of strings without a space", '"key-1","key-2"'],
  ["an empty string", '""'],
  ["a space in quotes", '"two words"'],
  ["an open quote", '"key-1'],
  ["a broken escape", '"key\\1"'],
  ["parameters", '"key-1";a=1'],
])("a key that is %s is rejected", async (_name, key) => {
  expect(await keyOf(key)).toMatchObject({
    status: 400,
    code: "idempotency-key-invalid",
    errors: [{ field: "header.idempotency-key" }],
  });
});

test.each(["k", "k".repeat(255), "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", "a,b"])("a key may be %s", async (key) => {
  const read = { scope: "alice POST /keys", key };
  expect(await keyOf(key)).toEqual(read);
  expect(await keyOf(`"${key}"`)).toEqual(read);
});

test("two key headers are rejected", async () => {
  await using app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" } });
  app.post("/keys", { schema: { operationId: "readKey" } }, async (request) => idempotencyKey(request, "alice").key);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  await using connection = await RawConnection.open(url);

  connection.send(
    "POST /keys HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nConnection: close\r\n\r\n",
  );

  expect(await connection.untilClosed()).toContain("idempotency-key-invalid");
});
