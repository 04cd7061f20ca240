import { createServer } from "node:net";
import { expect, test } from "vitest";
import { askServer } from "./server.ts";
import { placeOn, sharedBroker } from "./testing.ts";

const broker = sharedBroker();

function addressOf(url: string) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), tls: undefined };
}

test("the broker says who it is", async () => {
  const server = await askServer(addressOf(broker.url), 5_000);
  expect(server).toEqual({ product: "RabbitMQ", version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  await using place = placeOn(broker.url);
  expect((await (await place.open()).check()).engine).toBe(`RabbitMQ ${server.version}`);
});

test.each([
  ["says nothing", "", 200, "did not greet us within 200 ms"],
  ["speaks another language", "HTTP/1.1 400 Bad Request\r\n\r\n".repeat(3_000), 60_000, "does not speak AMQP 0-9-1"],
])("a server that %s is no broker", async (_, words, patienceMs, complaint) => {
  const server = createServer((socket) =>
    socket
      .on("error", () => {})
      .resume()
      .write(words),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address() as { port: number };
  const asked = askServer({ host: "127.0.0.1", port: address.port, tls: undefined }, patienceMs);
  await expect(asked).rejects.toThrow(complaint);
  await new Promise((closed) => server.close(closed));
});

test("nobody there is told at once", async () => {
  await expect(askServer({ host: "127.0.0.1", port: 1, tls: undefined }, 5_000)).rejects.toThrow("ECONNREFUSED");
});
