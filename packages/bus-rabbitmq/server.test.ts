import { createServer } from "node:net";
import { expect, test } from "vitest";
import { identifyServer } from "./server.ts";
import { createNamespace, sharedBroker } from "./testing.ts";

const broker = sharedBroker();

function parseAddress(url: string) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), tls: undefined };
}

test("the product and version of the broker are read", async () => {
  const server = await identifyServer(parseAddress(broker.url), 5_000);
  expect(server).toEqual({ product: "RabbitMQ", version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  await using namespace = createNamespace(broker.url);
  expect((await (await namespace.open()).check()).engine).toBe(`RabbitMQ ${server.version}`);
});

test.each([
  ["says nothing", "", 200, "did not answer within 200 ms"],
  ["speaks another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n".repeat(3_000), 60_000, "does not speak AMQP 0-9-1"],
])("a server that %s is rejected", async (_, response, timeoutMs, message) => {
  const server = createServer((socket) =>
    socket
      .on("error", () => {})
      .resume()
      .write(response),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address() as { port: number };
  const identifying = identifyServer({ host: "127.0.0.1", port: address.port, tls: undefined }, timeoutMs);
  await expect(identifying).rejects.toThrow(message);
  await new Promise((closed) => server.close(closed));
});

test("a closed port is reported at once", async () => {
  await expect(identifyServer({ host: "127.0.0.1", port: 1, tls: undefined }, 5_000)).rejects.toThrow("ECONNREFUSED");
});
