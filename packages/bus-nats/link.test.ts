import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openNatsBus } from "./index.ts";
import { serversAt } from "./servers.ts";
import { listen, thing } from "./testing.ts";

test("a bus opens while the server is away, says so, and works once it is there", async () => {
  await using engine = await startEngine("nats");
  await engine.kill();
  const said: string[] = [];
  await using bus = await openNatsBus({ url: engine.url, name: "test", log: (message) => said.push(message) });
  await expect(bus.publish([thing()])).rejects.toMatchObject({ name: "BusUnavailable", message: /connection refused/ });
  await expect(listen(bus)).rejects.toMatchObject({ name: "BusUnavailable" });
  await expect(bus.check()).rejects.toMatchObject({ name: "BusUnavailable" });
  expect(said).toContain("cannot connect to NATS; will try again");
  await engine.start();
  await until("it is connected", () =>
    bus.check().then(
      () => true,
      () => false,
    ),
  );
  expect(await bus.publish([thing()])).toEqual([done]);
});

test.each(["", "nats://", "nats://user:secret@[", "nats://one:4222,,nats://two:4222"])(
  "the address %j cannot be read, and is refused without repeating it",
  async (url) => {
    const opening = openNatsBus({ url, name: "test" });
    await expect(opening).rejects.toMatchObject({ message: "the address of the NATS server cannot be read" });
  },
);

test("the servers of a cluster are separated by commas, and tls:// asks for TLS", () => {
  expect(serversAt("nats://one:4222,two:4223")).toEqual({ servers: ["one:4222", "two:4223"] });
  expect(serversAt("tls://token@one:4222")).toEqual({ servers: ["one:4222"], token: "token", tls: {} });
});

test("a bus that never got its connection closes all the same", async () => {
  const engine = await startEngine("nats");
  await engine[Symbol.asyncDispose]();
  const bus = await openNatsBus({ url: engine.url, name: "test" });
  await bus[Symbol.asyncDispose]();
  await expect(bus.publish([thing()])).rejects.toMatchObject({ message: "this bus is closed" });
});

test("user and password stand in the address, and a wrong one is reported", async () => {
  await using engine = await startEngine("nats", { settings: { authorization: "{ user: todoke, password: 'p@ss' }" } });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://todoke:p%40ss@${host}`, name: "test" });
  expect(await bus.publish([thing()])).toEqual([done]);
  await using stranger = await openNatsBus({ url: `nats://todoke:guess@${host}`, name: "test" });
  await expect(stranger.publish([thing()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /authorization/i,
  });
});

test("a server without JetStream is refused with what to do about it", async () => {
  await using engine = await startEngine("nats", {
    settings: { accounts: "{ plain: { users: [ { user: a, password: b } ] } }" },
  });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://a:b@${host}`, name: "test" });
  await expect(bus.publish([thing()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /JetStream is not enabled/,
  });
});
