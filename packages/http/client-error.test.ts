import { until } from "@todoke/kernel/testing";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp, type HttpAppOptions } from "./app.ts";
import { post, RawConnection } from "./testing/raw-http.ts";

/** A server on a free port, whose one command waits until it is released. */
async function setup(options: Partial<HttpAppOptions> = {}) {
  const app = await buildHttpApp({ title: "test", version: "1", log: { level: "silent" }, ...options });
  const carriedOut: string[] = [];
  let goOn: (() => void) | undefined;
  app.post(
    "/echo",
    { schema: { operationId: "echo", body: Type.Object({ text: Type.String() }) } },
    async (request) => {
      carriedOut.push(request.body.text);
      return request.body;
    },
  );
  app.post(
    "/wait",
    { schema: { operationId: "wait", body: Type.Object({ text: Type.String() }) } },
    async (request) => {
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      carriedOut.push(request.body.text);
      return request.body;
    },
  );
  app.get("/long", { schema: { operationId: "long" } }, (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200).write("an response that has begun, and does not end yet");
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    app,
    carriedOut,
    goOn: () => goOn?.(),
    isWaiting: () => goOn !== undefined,
    open: () => RawConnection.open(url),
    async [Symbol.asyncDispose]() {
      goOn?.();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

const isProblem = (response: string, status: number, code: string) => {
  expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(response).toMatch(/content-type: application\/problem\+json/i);
  expect(response).toMatch(/x-request-id: \S+/i);
  expect(response).toContain(`"code":"${code}"`);
};

const greeting = post("/echo", { text: "hello" });

test.each([
  ["what is not HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"],
  ["a header with a NUL", "GET /livez HTTP/1.1\r\nHost: x\r\nX-Bad: a\0b\r\n\r\n"],
  ["a header name with a space", "GET /livez HTTP/1.1\r\nHost: x\r\nX Bad: a\r\n\r\n"],
  ["a header that goes on in the next line", "GET /livez HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b: c\r\n\r\n"],
  ["a length that is no number", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\nhello"],
  ["a negative length", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello"],
  ["two lengths", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"],
  [
    "a chunk whose size is no number",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  ],
  ["a path with a raw control character", "GET /a\x01b HTTP/1.1\r\nHost: x\r\n\r\n"],
])("%s gets problem+json, and the connection closes", async (_name, bytes) => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(bytes);

  isProblem(await connection.untilClosed(), 400, "malformed-http");
  expect(server.carriedOut).toEqual([]);
});

test("a request smuggled behind two framings is not executed", async () => {
  await using server = await setup();
  await using connection = await server.open();
  const smuggled = post("/echo", { text: "smuggled" });

  connection.send(
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
      `Content-Length: ${5 + smuggled.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  );

  isProblem(await connection.untilClosed(), 400, "malformed-http");
  expect(server.carriedOut).toEqual([]);
});

test.each([
  ["large", `X-Large: ${"a".repeat(20_000)}\r\n`],
  ["many", "a: b\r\n".repeat(100_000)],
])("headers that are too %s are rejected with 431", async (_name, headers) => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(`GET / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);

  isProblem(await connection.untilClosed(), 431, "headers-too-large");
});

test("slow headers time out", async () => {
  await using server = await setup({ headersTimeoutMs: 100 });
  await using connection = await server.open();

  connection.send("GET / HTTP/1.1\r\nHost: x\r\nX-Slow:");

  isProblem(await connection.untilClosed(), 408, "request-timeout");
});

test("a slow body times out, and nothing is executed", async () => {
  await using server = await setup({ headersTimeoutMs: 100, requestTimeoutMs: 200 });
  await using connection = await server.open();

  connection.send(greeting.slice(0, -3));

  isProblem(await connection.untilClosed(), 408, "request-timeout");
  expect(server.carriedOut).toEqual([]);
});

test("a body with a too large Content-Length is rejected before it is sent", async () => {
  await using server = await setup({ bodyMaxBytes: 100 });
  await using connection = await server.open();

  connection.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 101\r\n\r\n");

  isProblem(await connection.untilClosed(), 413, "body-too-large");
});

test("a chunked body is rejected as soon as it is too large", async () => {
  await using server = await setup({ bodyMaxBytes: 100 });
  await using connection = await server.open();

  connection.send(
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  connection.send(`60\r\n${"a".repeat(0x60)}\r\n5\r\naaaaa\r\n`);

  isProblem(await connection.untilAnswers(1), 413, "body-too-large");
});

test("a body of exactly the limit is accepted", async () => {
  const body = JSON.stringify({ text: "a".repeat(89) });
  await using server = await setup({ bodyMaxBytes: body.length });
  await using connection = await server.open();

  connection.send(post("/echo", body));

  expect(await connection.untilAnswers(1)).toMatch(/^HTTP\/1\.1 200 /);
});

test("a body longer than its Content-Length is cut there, and the rest is not HTTP", async () => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(`${greeting}} surplus`);

  await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 400]);
  expect(server.carriedOut).toEqual(["hello"]);
});

test("pipelined requests get their responses in order", async () => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(post("/wait", { text: "1" }) + post("/echo", { text: "2" }) + post("/echo", { text: "3" }));
  await until("the last is carried out", () => server.carriedOut.includes("3"));
  expect(connection.received).toBe("");
  server.goOn();

  const responses = await connection.untilAnswers(3);
  expect(responses.match(/"text":"\d"/g)).toEqual(['"text":"1"', '"text":"2"', '"text":"3"']);
});

test("a rejected body does not affect the requests behind it", async () => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(
    post("/echo", "{ not json") + post("/echo", { text: "1" }) + post("/echo", "{}") + post("/echo", { text: "2" }),
  );

  await connection.untilAnswers(4);
  expect(connection.statuses).toEqual([400, 200, 400, 200]);
  expect(connection.closed).toBe(false);
});

test("nothing is executed behind the last response of a connection", async () => {
  const lines: string[] = [];
  await using server = await setup({ log: { stream: { write: (line) => void lines.push(line) } } });
  await using connection = await server.open();

  server.app.connections.closeAfterResponses();
  connection.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(await connection.untilAnswers(1)).toMatch(/connection: close/i);
  connection.send(post("/echo", { text: "too late" }));

  await until("it was refused", () => lines.join("").includes('"code":"unavailable"'));
  expect(server.carriedOut).toEqual([]);
});

test("a running request gets its own response, not the error of what follows", async () => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(`${post("/wait", { text: "first" })}GARBAGE\r\n\r\n`);
  await until("the first is being carried out", () => server.isWaiting());
  connection.send("more garbage\r\n\r\n");
  server.goOn();

  const responses = await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 400]);
  expect(responses).toMatch(/^HTTP\/1\.1 200 [\s\S]*"text":"first"[\s\S]*HTTP\/1\.1 400 /);
  expect(server.carriedOut).toEqual(["first"]);
});

test("a broken body behind another request waits for its response", async () => {
  await using server = await setup();
  await using connection = await server.open();
  const broken =
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";

  connection.send(post("/wait", { text: "first" }) + broken);
  await until("the first is being carried out", () => server.isWaiting());
  server.goOn();

  await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 400]);
  expect(server.carriedOut).toEqual(["first"]);
});

test("a connection closed during a body has no effect and is not a failure", async () => {
  const lines: string[] = [];
  await using server = await setup({ log: { stream: { write: (line) => void lines.push(line) } } });
  const connection = await server.open();
  connection.send(greeting.slice(0, -3));
  await until("the request has begun", () => server.app.connections.pending === 1);

  await connection[Symbol.asyncDispose]();

  await until("the log has it", () => lines.join("").includes('"code":"malformed-http"'));
  expect(lines.join("")).not.toContain('"failed"');
  expect(server.app.connections.pending).toBe(0);
  expect(server.carriedOut).toEqual([]);
});

test.each([
  ["OPTIONS * HTTP/1.1", 404],
  ["GET http://elsewhere/echo HTTP/1.1", 405],
  ["TRACE /echo HTTP/1.1", 405],
  ["PROPFIND /echo HTTP/1.1", 405],
  ["DELETE /echo HTTP/1.1", 405],
])("%s is unusual but valid HTTP", async (line, status) => {
  await using server = await setup();
  await using connection = await server.open();

  connection.send(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);

  expect(await connection.untilClosed()).toContain("application/problem+json");
  expect(connection.statuses).toEqual([status]);
});

test("a request without a Host is rejected", async () => {
  await using server = await setup();
  await using connection = await server.open();
  connection.send("GET /echo HTTP/1.1\r\n\r\n");
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 400 /);
});

test("after any bytes the next caller is served", async () => {
  await using server = await setup();
  for (let seed = 1; seed <= 40; seed++) {
    await using connection = await server.open();
    connection.send(mangled(greeting, seed));
  }
  await using connection = await server.open();
  connection.send(greeting);
  expect(await connection.untilAnswers(1)).toMatch(/^HTTP\/1\.1 200 /);
});

/** The same request with some bytes changed, the same for the same seed. */
function mangled(request: string, seed: number): Uint8Array {
  const bytes = Buffer.from(request);
  let state = seed;
  for (let i = 0; i < 5; i++) {
    state = (state * 48_271) % 0x7fffffff;
    bytes[state % bytes.length] = state & 0xff;
  }
  return bytes;
}
