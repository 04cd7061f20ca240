import { startEngine } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openNatsBus } from "./index.ts";
import { parseNatsUrl } from "./servers.ts";
import { recordDeliveries, sampleEvent } from "./testing.ts";

test("a bus opens while the server is unavailable and works once it is there", async () => {
  await using engine = await startEngine("nats");
  await engine.kill();
  const logged: string[] = [];
  await using bus = await openNatsBus({ url: engine.url, name: "test", log: (message) => logged.push(message) });
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /connection refused/,
  });
  await expect(recordDeliveries(bus)).rejects.toMatchObject({ name: "BusUnavailable" });
  await expect(bus.check()).rejects.toMatchObject({ name: "BusUnavailable" });
  expect(logged).toContain("cannot connect to NATS; retrying");
  await engine.start();
  await until("it is connected", () =>
    bus.check().then(
      () => true,
      () => false,
    ),
  );
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
});

test.each(["", "nats://", "nats://user:secret@[", "nats://one:4222,,nats://two:4222"])(
  "the invalid URL %j is rejected, and the error does not repeat it",
  async (url) => {
    const opening = openNatsBus({ url, name: "test" });
    await expect(opening).rejects.toMatchObject({ message: "the URL of the NATS server is invalid" });
  },
);

test("a URL has several servers separated by commas, and tls:// requests TLS", () => {
  expect(parseNatsUrl("nats://one:4222,two:4223").client).toEqual({ servers: ["one:4222", "two:4223"] });
  const { client } = parseNatsUrl("tls://token@one:4222,tls://two:4222");
  expect(client).toMatchObject({ servers: ["one:4222", "two:4222"], token: "token", tls: {} });
});

test("a bus that never connected can be closed", async () => {
  const engine = await startEngine("nats");
  await engine[Symbol.asyncDispose]();
  const bus = await openNatsBus({ url: engine.url, name: "test" });
  await bus[Symbol.asyncDispose]();
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({ message: "this bus is closed" });
});

test("credentials in the URL are used, and wrong ones are reported", async () => {
  await using engine = await startEngine("nats", { settings: { authorization: "{ user: todoke, password: 'p@ss' }" } });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://todoke:p%40ss@${host}`, name: "test" });
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  await using stranger = await openNatsBus({ url: `nats://todoke:guess@${host}`, name: "test" });
  await expect(stranger.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /authorization/i,
  });
});

test("publishing to a server without JetStream fails with the setting to change", async () => {
  await using engine = await startEngine("nats", {
    settings: { accounts: "{ plain: { users: [ { user: a, password: b } ] } }" },
  });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://a:b@${host}`, name: "test" });
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /JetStream is not enabled/,
  });
});
