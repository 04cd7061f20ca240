import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { buildHttpApp } from "./app.ts";
import { type ConnectionBounds, Connections } from "./connections.ts";
import { notFound } from "./problems.ts";
import { RawConnection } from "./testing/raw-http.ts";

test("a callback for the end of pending responses runs once", () => {
  const connections = new Connections();
  const socket = new EventEmitter() as Socket;
  const response = Object.assign(new EventEmitter(), { req: { socket, complete: true } }) as unknown as ServerResponse;
  let runs = 0;

  connections.opened(socket);
  connections.began(response);
  for (let fault = 0; fault < 100; fault++) connections.afterResponses(socket, () => void runs++);
  expect(response.listenerCount("close")).toBe(1);
  response.emit("close");

  expect(runs).toBe(1);
});

test("a broken request that is the last allowed one waits for the response before it", () => {
  const connections = new Connections({ inFlightMax: 9, requestsMax: 2, connectionsMax: 9 });
  const socket = new EventEmitter() as Socket;
  const respond = (complete: boolean) =>
    Object.assign(new EventEmitter(), { req: { socket, complete }, setHeader() {} }) as unknown as ServerResponse;
  const [whole, broken] = [respond(true), respond(false)];
  let runs = 0;

  connections.opened(socket);
  for (const response of [whole, broken]) {
    expect(connections.admit(response)).toBe("handle");
    connections.began(response);
  }
  connections.afterResponses(socket, () => void runs++);
  expect(runs).toBe(0);
  whole.emit("close");

  expect(runs).toBe(1);
});

test("a closed connection is not tracked", () => {
  const connections = new Connections();
  const socket = new EventEmitter() as Socket;
  const response = Object.assign(new EventEmitter(), { req: { socket, complete: true } }) as unknown as ServerResponse;

  connections.opened(socket);
  connections.began(response);
  expect(connections.pending).toBe(1);
  socket.emit("close");

  expect(connections.pending).toBe(0);
});

/** A server whose requests wait until they are released, and what it has begun and logged. */
async function setup(bounds: Partial<ConnectionBounds>) {
  const lines: { readonly msg: string; readonly count?: number }[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const app = await buildHttpApp({ title: "test", version: "1", log: { stream }, bounds });
  const held = Promise.withResolvers<void>();
  const seen = { begun: 0, closed: 0 };
  app.get("/held", { schema: { operationId: "held" } }, async (_request, reply) => {
    seen.begun++;
    reply.raw.on("close", () => seen.closed++);
    await held.promise;
    return {};
  });
  app.get("/refused", { schema: { operationId: "refused" } }, async () => {
    await setImmediate();
    throw notFound("not here");
  });
  app.get("/kept", { schema: { operationId: "kept" } }, async (_request, reply) => {
    reply.header("connection", "keep-alive");
    return {};
  });
  app.get("/livez", { schema: { operationId: "livez" } }, async () => {
    seen.begun++;
    return {};
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    lines,
    seen,
    release: held.resolve,
    closeAfterAnswers: () => app.connections.closeAfterResponses(),
    open: () => RawConnection.open(url),
    async [Symbol.asyncDispose]() {
      held.resolve();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test("a connection with too many requests in flight gets their responses, one 429, and is closed", async () => {
  await using server = await setup({ inFlightMax: 5 });
  await using connection = await server.open();
  await using other = await server.open();

  connection.send(get("/held").repeat(50));
  await until("as many as may be have begun", () => server.seen.begun === 5);
  other.send(get("/livez"));
  expect(await other.untilAnswers(1)).toMatch(/^HTTP\/1\.1 200 /);
  server.release();

  const responses = await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 200, 200, 200, 200, 429]);
  expect(responses).toMatch(/429 [\s\S]*connection: close[\s\S]*"code":"too-many-in-flight"/i);
  expect(server.seen.begun).toBe(6); // The other connection's among them.
  expect(server.lines.filter(({ msg }) => msg.startsWith("requests were rejected")).length).toBe(1);
});

test("five connections that pipeline 5,000 requests get no more than their bound", async () => {
  await using server = await setup({});
  const connections = await Promise.all(Array.from({ length: 5 }, () => server.open()));
  for (const connection of connections) connection.send(get("/livez").repeat(5_000));
  await Promise.all(connections.map((connection) => connection.untilClosed()));
  // Each has had at most a thousand, however its bytes were cut into pieces.
  expect(server.seen.begun).toBeLessThanOrEqual(5 * 1_000);
  await using after = await server.open();
  after.send(get("/livez"));
  expect(await after.untilAnswers(1)).toMatch(/^HTTP\/1\.1 200 /);
});

test("the response to the last allowed request says close; later ones are not executed", async () => {
  await using server = await setup({ requestsMax: 3 });
  await using connection = await server.open();

  connection.send(get("/livez"));
  expect(await connection.untilAnswers(1)).toMatch(/connection: keep-alive/i);
  connection.send(get("/livez").repeat(4));

  expect(await connection.untilClosed()).toMatch(/connection: close/i);
  expect(connection.statuses).toEqual([200, 200, 200]);
  expect(server.seen.begun).toBe(3);
});

test("a connection is closed after its last allowed request, even if the route wants to keep it", async () => {
  await using server = await setup({ requestsMax: 2 });
  await using connection = await server.open();

  connection.send(get("/livez") + get("/kept") + get("/livez"));
  await connection.untilAnswers(2);

  await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 200]);
});

test("a process that stops still sends a 429 behind requests in flight", async () => {
  await using server = await setup({ inFlightMax: 2 });
  await using connection = await server.open();

  connection.send(get("/held").repeat(3));
  await until("one is rejected", () => server.lines.some(({ msg }) => msg.startsWith("requests were rejected")));
  server.closeAfterAnswers();
  server.release();

  await connection.untilClosed();
  expect(connection.statuses).toEqual([200, 200, 429]);
});

test("the response to the last allowed request says close, also if it is rejected late", async () => {
  await using server = await setup({ requestsMax: 2 });
  await using connection = await server.open();

  connection.send(get("/livez"));
  await connection.untilAnswers(1);
  connection.send(get("/refused"));

  expect(await connection.untilClosed()).toMatch(/HTTP\/1\.1 404 [\s\S]*connection: close/i);
});

test("while the process stops, the response to a request that is rejected late says close", async () => {
  await using server = await setup({});
  await using connection = await server.open();

  server.closeAfterAnswers();
  connection.send(get("/refused"));

  expect(await connection.untilClosed()).toMatch(/HTTP\/1\.1 404 [\s\S]*connection: close/i);
});

test("sequential requests do not count as in flight together", async () => {
  await using server = await setup({ inFlightMax: 2 });
  await using connection = await server.open();
  for (let n = 1; n <= 6; n++) {
    connection.send(get("/livez"));
    await connection.untilAnswers(n);
  }
  expect(connection.statuses).toEqual([200, 200, 200, 200, 200, 200]);
});

test("a client that keeps sending after a 429 is disconnected", async () => {
  await using server = await setup({ inFlightMax: 1 });
  await using connection = await server.open();

  connection.send(get("/held").repeat(3_000));

  expect(await connection.untilClosed()).toBe(""); // Its first request is still held.
  expect(server.seen.begun).toBe(1);
});

test("connections beyond the limit are closed at once, and one line has their number", async () => {
  await using server = await setup({ connectionsMax: 2 });
  await using first = await server.open();
  await using second = await server.open();
  for (const each of [first, second]) each.send(get("/livez"));
  for (const each of [first, second]) await each.untilAnswers(1);

  const refused = await Promise.all(Array.from({ length: 10 }, () => server.open()));
  for (const each of refused) expect(await each.untilClosed()).toBe("");

  const refusals = () => server.lines.filter(({ msg }) => msg.startsWith("connections were refused"));
  await until("all ten are counted", () => refusals().reduce((sum, { count = 0 }) => sum + count, 0) === 10);
  expect(refusals().length).toBeLessThanOrEqual(2);
});

test("every request of a closed connection is aborted, also those that wait behind another", async () => {
  await using server = await setup({});
  const connection = await server.open();
  connection.send(get("/held").repeat(3));
  await until("all three have begun", () => server.seen.begun === 3);

  await connection[Symbol.asyncDispose]();

  await until("all three are over", () => server.seen.closed === 3);
  server.release();
  expect(server.seen.closed).toBe(3);
});
