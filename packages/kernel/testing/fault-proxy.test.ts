import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { openFaultProxy } from "./fault-proxy.ts";
import { until } from "./index.ts";

/** An echo server behind a proxy, and the text it has received. */
async function echo() {
  let received = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      received += data;
      socket.write(data);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const proxy = await openFaultProxy(`tcp://127.0.0.1:${port}`);
  return {
    proxy,
    received: () => received,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      server.close();
    },
  };
}

async function connectTo(url: string) {
  const socket: Socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  let received = "";
  socket.on("error", () => {});
  socket.on("data", (data) => {
    received += data;
  });
  return {
    send: (text: string) => void socket.write(text),
    received: () => received,
    isClosed: () => socket.destroyed,
  };
}

test("delayed data arrives complete and in order, also after the delay ends", async () => {
  await using server = await echo();
  const client = await connectTo(server.proxy.url);
  server.proxy.delay(60);
  const startedAt = performance.now();
  client.send("one ");
  await until("the first has arrived", () => server.received() === "one ");
  expect(performance.now() - startedAt).toBeGreaterThan(50);
  server.proxy.delay(0);
  client.send("two ");
  await until("both are echoed", () => client.received().length === 8);
  expect(client.received()).toBe("one two ");
});

test("a black hole drops data in both directions without closing the connection", async () => {
  await using server = await echo();
  const client = await connectTo(server.proxy.url);
  client.send("first "); // Received, so that the proxy reads the next data before the other client connects.
  await until("it is echoed", () => client.received() === "first ");
  server.proxy.dropAll();
  client.send("lost ");
  const other = await connectTo(server.proxy.url);
  server.proxy.stopDropping();
  other.send("found ");
  await until("the proxy works again", () => other.received() === "found ");
  expect(server.received()).toBe("first found ");
  expect(client.isClosed()).toBe(false);
});

test("cutNext resolves when the cut has happened, and disarm cancels it", async () => {
  await using server = await echo();
  const client = await connectTo(server.proxy.url);
  void server.proxy.cutNext("commit", "answer");
  server.proxy.disarm();
  client.send("commit ");
  await until("it is echoed", () => client.received() === "commit ");

  const cut = server.proxy.cutNext("commit", "answer");
  client.send("commit ");
  await cut;
  expect(server.received()).toBe("commit commit ");
  await until("the connection is closed", () => client.isClosed());
  expect(client.received()).toBe("commit ");
});

test("a connection is cut in the place of a byte, once, in either direction", async () => {
  await using server = await echo();
  const client = await connectTo(server.proxy.url);
  const isWaiting = server.proxy.cutAfter(5, "request");
  client.send("ab");
  await until("it is echoed", () => client.received() === "ab");
  expect(isWaiting()).toBe(true);
  client.send("cdefg");
  await until("the connection is cut", () => client.isClosed());
  await until("the server has what was before the cut", () => server.received() === "abcde");
  expect(isWaiting()).toBe(false);

  const other = await connectTo(server.proxy.url);
  server.proxy.cutAfter(3, "answer");
  other.send("1234");
  await until("the connection is cut", () => other.isClosed());
  expect([server.received(), other.received()]).toEqual(["abcde1234", "123"]);
});
