import { execFile, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { promisify, stripVTControlCharacters } from "node:util";
import { ContextError, eventContext } from "@todoke/kernel/telemetry";
import { until } from "@todoke/kernel/testing";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { logError } from "./log.ts";
import { recordTelemetry } from "./testing/recorded.ts";

recordTelemetry();

const canary = "canary-7f3a";

async function setup(level: "info" | "debug") {
  const lines: string[] = [];
  const log = { level, stream: { write: (line: string) => void lines.push(line) } };
  const app = await buildHttpApp({ title: "test", version: "1", log });
  const querystring = Type.Object({ code: Type.Optional(Type.String()) });
  app.post("/things", { schema: { operationId: "make", querystring } }, async (request) => {
    request.log.info({ headers: request.headers, user: { password: canary, token: canary } }, "made");
    return {};
  });
  app.post("/tells", { schema: { operationId: "tell" } }, async (request) => {
    request.log.info({ user_id: (request.body as { nasty: string }).nasty }, "told");
    return {};
  });
  app.post("/fails/:name", { schema: { operationId: "fail" } }, async (request) => {
    throw new Error(`failed for ${JSON.stringify(request.body)} and ${(request.params as { name: string }).name}`);
  });
  return { app, lines, [Symbol.asyncDispose]: () => app.close() };
}

test("secrets in headers, bodies and queries are not logged at any level", async () => {
  await using t = await setup("debug");
  const headers = { authorization: `Bearer ${canary}`, cookie: `__Host-s=${canary}`, "idempotency-key": canary };

  await t.app.inject({ method: "POST", url: `/things?code=${canary}`, headers, payload: { text: canary } });
  await t.app.inject({ method: "POST", url: `/nothing?code=${canary}`, headers, payload: { text: canary } });
  await t.app.inject({ method: "POST", url: `/things?code=${canary}%ff`, headers });
  await t.app.inject({
    method: "POST",
    url: "/nothing",
    headers: { ...headers, traceparent: canary, baggage: canary },
  });
  await t.app.inject({
    method: "POST",
    url: "/things",
    headers: { ...headers, "content-type": "application/json" },
    payload: `{"${canary}`,
  });

  expect(t.lines.length).toBeGreaterThanOrEqual(5);
  expect(t.lines.join("")).toContain("(hidden)");
  expect(t.lines.join("")).not.toContain(canary);
});

test("a rejected request is logged by its route, without the path", async () => {
  await using t = await setup("debug");
  for (const url of [`/fails/${canary}`, `/nothing/${canary}`, `/${canary}`, `/fails/${canary}%ff`])
    for (const method of ["GET", "POST"] as const) await t.app.inject({ method, url });

  const lines = t.lines.map((line) => JSON.parse(line));
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: "responded", req: { method: "POST", route: "/fails/:name" } }),
  );
  expect(lines.filter(({ msg }) => msg === "refused").length).toBeGreaterThanOrEqual(6);
  // The failing handler writes the name into its own error; no other line may have it.
  expect(
    lines
      .filter(({ msg }) => msg !== "failed")
      .map((line) => JSON.stringify(line))
      .join(),
  ).not.toContain(canary);
});

test("no text of a caller starts a new line or controls a terminal", async () => {
  await using t = await setup("debug");
  const nasty = '\r\n{"level":60,"msg":"fake"}\n\t\u007f\u009b31m\u2028\u2029\u202e';

  await t.app.inject({ method: "POST", url: `/fails/${encodeURIComponent(nasty)}`, payload: { nasty } });
  await t.app.inject({ method: "POST", url: "/things/\u2028", headers: { "x-request-id": "a\tb" } });
  await t.app.inject({
    method: "POST",
    url: "/tells",
    payload: { nasty: nasty.replace(/[^\u009b\u2028-\u202e]/g, "") },
  });

  expect(t.lines.length).toBeGreaterThanOrEqual(5);
  expect(t.lines.join("")).toContain('"user_id":"\\u009b\\u2028\\u2029\\u202e"');
  for (const line of t.lines) {
    expect(line.indexOf("\n")).toBe(line.length - 1);
    expect(JSON.parse(line).msg).not.toBe("fake");
    expect(line).not.toMatch(/[\r\x7f-\x9f\u2028\u2029\u202e]/);
  }
});

test("a success is logged at debug only; a failure always, with the id of the request", async () => {
  await using quiet = await setup("info");
  await quiet.app.inject({ method: "GET", url: "/openapi.json" });
  expect(quiet.lines).toEqual([]);
  await quiet.app.inject({ method: "GET", url: "/nothing", headers: { "x-request-id": "r-1" } });
  expect(quiet.lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: "refused", request_id: "r-1", status: 404 },
  ]);

  await using loud = await setup("debug");
  await loud.app.inject({ method: "GET", url: "/openapi.json", headers: { "x-request-id": "r-2" } });
  expect(loud.lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: "responded", request_id: "r-2" }]);
});

const traceId = "0af7651916cd43dd8448eb211c80319c";

test("a line about a request has its id, its trace and the hash of its idempotency key", async () => {
  await using t = await setup("info");
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, "x-request-id": "r-1" };
  const told = { request_id: "r-1", trace_id: traceId, idempotency_key_hash: hash("sha256", "key-1", "hex") };

  await t.app.inject({ method: "POST", url: "/fails/x", headers: { ...headers, "idempotency-key": "key-1" } });
  await t.app.inject({ method: "POST", url: "/nothing", headers: { ...headers, "idempotency-key": '"key-1"' } });
  await t.app.inject({ method: "POST", url: "/nothing", headers: { "idempotency-key": "no key" } });

  const [failed, refused, another] = t.lines.map((line) => JSON.parse(line));
  expect([failed, refused]).toMatchObject([
    { msg: "failed", ...told },
    { msg: "refused", ...told },
  ]);
  expect(another.trace_id).toMatch(/^[0-9a-f]{32}$/);
  expect(another.trace_id).not.toBe(traceId);
  expect(another).not.toHaveProperty("idempotency_key_hash");
});

test("a line about an event has its id and its trace", async () => {
  await using t = await setup("info");
  const event = { eventId: "e-1", eventType: "Happened", headers: { trace_id: traceId }, payload: canary };
  logError(t.app.log, new ContextError("relay: gave up e-1", { context: { ...eventContext(event), attempt: 3 } }));
  expect(t.lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: "relay: gave up e-1", event_id: "e-1", event_type: "Happened", trace_id: traceId, attempt: 3 },
  ]);
  expect(t.lines.join("")).not.toContain(canary);
});

test("lines that are not written yet are written when the process exits", async () => {
  const module = new URL("./log.ts", import.meta.url).href;
  const code = `const { openLog } = await import("${module}");
    const [one, two] = [openLog({}), openLog({})];
    one.info("first"); two.info("second"); one.info("third");
    process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code]);
  const messages = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).msg);
  expect(messages).toEqual(["first", "second", "third"]);
});

test("a process whose output nobody reads any longer goes on, and exits in order", async () => {
  const module = new URL("./log.ts", import.meta.url).href;
  const code = `const { openLog } = await import("${module}");
    const log = openLog({});
    let lines = 0;
    setInterval(() => {
      log.info("a line");
      if (++lines === 500) process.exit(7);
    }, 1);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.stdout.destroy();
  expect(await once(child, "exit")).toEqual([7, null]);
});

test("all lines reach a reader that is slower than the log", async () => {
  const module = new URL("./log.ts", import.meta.url).href;
  const code = `const { openLog } = await import("${module}");
    const log = openLog({});
    for (let n = 0; n < 5_000; n++) log.info({ n, text: "x".repeat(200) }, "line");
    setTimeout(() => {}, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (data) => {
    text += data;
  });
  await until("all lines are here", () => text.split("\n").length === 5_001);
  child.kill("SIGKILL");
  const numbers = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).n);
  expect(numbers).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
});

test("on a terminal a line is text for people, without ids, and a caller's text cannot control the terminal", async () => {
  const lines: string[] = [];
  const exported: string[] = [];
  const app = await buildHttpApp({
    title: "test",
    version: "1",
    log: {
      format: "text",
      fields: { service: "points", version: "1" },
      stream: { write: (line: string) => void lines.push(line) },
      onLine: (line) => exported.push(line),
    },
  });
  app.post("/fails/:name", { schema: { operationId: "fail" } }, async () => {
    throw new Error("the pump failed", { cause: new Error("no\u001b[2Jwater\u009b") });
  });
  await app.inject({ method: "POST", url: "/nothing" });
  await app.inject({ method: "POST", url: "/fails/u_1" });
  app.log.warn({ user_id: "u\n1" }, "hm");
  await app.close();
  const plain = lines.map((line) => stripVTControlCharacters(line));
  expect(plain).toEqual([
    expect.stringMatching(/^\d\d:\d\d:\d\d points {7}info {2}refused POST \(no route\) 404 not-found\s*\n$/),
    expect.stringMatching(
      /^\d\d:\d\d:\d\d points {7}error failed POST \/fails\/:name 500 .*request_id=.*\n {9}Error: the pump failed\n {9}Error: no\\u001b\[2Jwater\\u009b\n( {9}at .*\n){1,3}$/,
    ),
    expect.stringMatching(/^\d\d:\d\d:\d\d points {7}warn {2}hm user_id=u\\u000a1\n$/),
  ]);
  expect(exported.map((line) => JSON.parse(line).service)).toEqual(["points", "points", "points"]);
});
