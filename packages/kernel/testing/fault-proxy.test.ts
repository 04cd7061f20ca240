import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { openWire } from "./fault-proxy.ts";
import { until } from "./index.ts";

/** A server that says back what it hears, and what it has heard. */
async function echo() {
  let heard = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (said) => {
      heard += said;
      socket.write(said);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const wire = await openWire(`tcp://127.0.0.1:${port}`);
  return {
    wire,
    heard: () => heard,
    async [Symbol.asyncDispose]() {
      await wire[Symbol.asyncDispose]();
      server.close();
    },
  };
}

async function client(url: string) {
  const socket: Socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  let heard = "";
  socket.on("error", () => {});
  socket.on("data", (said) => {
    heard += said;
  });
  return { say: (text: string) => void socket.write(text), heard: () => heard, isGone: () => socket.destroyed };
}

test("what is said over a slow wire arrives late, whole, and in its order, also when the wire becomes fast again", async () => {
  await using far = await echo();
  const near = await client(far.wire.url);
  far.wire.delay(60);
  const startedAt = performance.now();
  near.say("one ");
  await until("the first is under way", () => far.heard() === "one ");
  expect(performance.now() - startedAt).toBeGreaterThan(50);
  far.wire.delay(0);
  near.say("two ");
  await until("both are answered", () => near.heard().length === 8);
  expect(near.heard()).toBe("one two ");
});

test("a black hole swallows both ways, and tells nobody", async () => {
  await using far = await echo();
  const near = await client(far.wire.url);
  near.say("first "); // Heard, so that the wire reads what comes next before it meets the other.
  await until("it is through", () => near.heard() === "first ");
  far.wire.swallow();
  near.say("lost ");
  const other = await client(far.wire.url);
  far.wire.listenAgain();
  other.say("found ");
  await until("the wire works again", () => other.heard() === "found ");
  expect(far.heard()).toBe("first found ");
  expect(near.isGone()).toBe(false);
});

test("a cut is told when it has happened, and one that was called off never happens", async () => {
  await using far = await echo();
  const near = await client(far.wire.url);
  void far.wire.cutNext("commit", "answer");
  far.wire.disarm();
  near.say("commit ");
  await until("it is answered", () => near.heard() === "commit ");

  const cut = far.wire.cutNext("commit", "answer");
  near.say("commit ");
  await cut;
  expect(far.heard()).toBe("commit commit ");
  await until("the connection is gone", () => near.isGone());
  expect(near.heard()).toBe("commit ");
});
