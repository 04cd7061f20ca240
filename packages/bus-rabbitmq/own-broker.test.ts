/** Tests that need a broker with other settings. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { type Engine, startEngine } from "@todoke/engines";
import { type CertificateFiles, createCa, freePort, until } from "@todoke/kernel/testing";
import { done, retry } from "@todoke/kernel/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRabbitmqBus } from "./index.ts";
import { createNamespace, recordDeliveries, sampleEvent, sampleEvents, startMs, subject } from "./testing.ts";

const consumers = { listener: [subject] };

/** A listener with another certificate before the broker, which reads its own only once. */
async function terminateTls({ cert, key }: CertificateFiles, url: string) {
  const { hostname: host, port } = new URL(url);
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
    socket.on("error", () => {});
    socket
      .pipe(connect({ host, port: Number(port) }))
      .on("error", () => {})
      .pipe(socket);
  });
  server.on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address() as AddressInfo;
  return { port: address.port, [Symbol.asyncDispose]: async () => void server.close() };
}

describe("a broker with low limits and TLS", () => {
  const ca = createCa("Todoke test CA");
  const otherCa = createCa("Another CA");
  let broker: Engine;
  let tlsPort: number;
  beforeAll(async () => {
    const { cert, key } = ca.issue("broker", ["localhost"]);
    tlsPort = await freePort();
    const tls = { "ssl_options.cacertfile": ca.file, "ssl_options.certfile": cert, "ssl_options.keyfile": key };
    const listener = { "listeners.ssl.1": `127.0.0.1:${tlsPort}`, ...tls };
    broker = await startEngine("rabbitmq", { settings: { max_message_size: "50000", ...listener } });
  }, startMs);
  afterAll(async () => {
    await broker[Symbol.asyncDispose]();
    ca[Symbol.dispose]();
    otherCa[Symbol.dispose]();
  }, startMs);

  const urlOf = (host: string, caFile: string, scheme = "amqps") =>
    `${scheme}://guest:guest@${host}:${tlsPort}?${scheme === "amqps" ? new URLSearchParams({ ca_file: caFile }) : ""}`;

  /** Why the bus cannot be used, as `todoke doctor` shows it. */
  async function faultOf(url: string): Promise<string> {
    await using bus = await openRabbitmqBus({ url, name: "test" });
    return bus.check().then(
      () => "none",
      (error: Error) => error.message,
    );
  }

  test("with the right CA, events go through TLS, also if the first node of the list is gone", async () => {
    const url = urlOf("localhost", ca.file).replace("@", `@localhost:${await freePort()},`);
    await using namespace = createNamespace(broker.url);
    await using bus = await openRabbitmqBus({ url, name: "test", namespace: namespace.name, consumers });
    const event = sampleEvent();
    await until("it is stored", () =>
      bus.publish([event]).then(
        ([outcome]) => outcome?.kind === "done",
        () => false,
      ),
    );
    let recorded: Awaited<ReturnType<typeof recordDeliveries>> | undefined;
    await until("it is subscribed", async () => {
      recorded = await recordDeliveries(bus).catch(() => undefined);
      return recorded !== undefined;
    });
    await until("it arrives", () => (recorded?.deliveries ?? []).some(({ eventId }) => eventId === event.eventId));
  });

  test("a fault of the certificate is named, with the address and what to do, and without the password", async () => {
    expect(await faultOf(urlOf("localhost", otherCa.file))).toMatch(
      /the certificate of RabbitMQ at amqps:\/\/guest@localhost:\d+ is not signed by a CA that this process trusts: set/,
    );
    expect(await faultOf(urlOf("127.0.0.1", ca.file))).toMatch(
      /the certificate of RabbitMQ at \S+ is for localhost, not 127\.0\.0\.1: connect by a name that it has, or issue/,
    );
    expect(await faultOf(urlOf("localhost", ca.file, "amqp"))).toMatch(/if it expects TLS there, use amqps:\/\/$/);
    expect(await faultOf(broker.url.replace("amqp:", "amqps:"))).toMatch(/does not speak TLS there: use its TLS port/);
    await using expired = await terminateTls(ca.issue("expired", ["localhost"], [-48, -24]), broker.url);
    expect(await faultOf(`amqps://guest:guest@localhost:${expired.port}?ca_file=${ca.file}`)).toMatch(
      /the certificate of RabbitMQ at \S+, or of its CA, has expired by the clock of this machine: renew it/,
    );
  });

  test("when a channel closes during confirms, only the event that closed it is dead", async () => {
    await using namespace = createNamespace(broker.url);
    const bus = await namespace.open({ consumers });
    const events = sampleEvents(200);
    events[100] = sampleEvent({ payload: Buffer.alloc(60_000) });
    const outcomes = await bus.publish(events);
    expect(outcomes[100]).toEqual({ kind: "dead", reason: "its payload has 60000 bytes; the limit is 50000" });
    const unconfirmed = events.filter((_, n) => outcomes[n]?.kind === "retry");
    expect(unconfirmed.length).toBeGreaterThanOrEqual(99);
    expect(outcomes.filter(({ kind }) => kind === "done").length + unconfirmed.length).toBe(199);

    // Now the limit is known: a large event does not affect the others.
    const secondTime = await bus.publish([...unconfirmed, sampleEvent({ payload: Buffer.alloc(60_000) })]);
    expect(secondTime.map(({ kind }) => kind)).toEqual([...unconfirmed.map(() => "done"), "dead"]);
    const recorded = await recordDeliveries(await namespace.open());
    const deliveries = () => new Set(recorded.deliveries.map(({ eventId }) => eventId));
    await until("every other event arrives", () => deliveries().size === 199);
  });
});

test(
  "a broker that is short of memory blocks publishers, not consumers",
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "todoke-test-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const normal = stack.use(await startEngine("rabbitmq", { dir }));
    let constrained: Engine | undefined;
    stack.defer(() => constrained?.[Symbol.asyncDispose]());
    const namespace = stack.use(createNamespace(normal.url));
    const bus = await namespace.open({ consumers, newQueueDelayMs: 1_500, publishTimeoutMs: 5_000 });
    const events = sampleEvents(5);
    expect(await bus.publish(events)).toEqual(events.map(() => done));

    await normal.kill();
    const settings = { "vm_memory_high_watermark.absolute": "1MB" };
    constrained = await startEngine("rabbitmq", { dir, settings, port: Number(new URL(normal.url).port) });
    const refusal = () =>
      bus.publish([sampleEvent({ eventType: "Probe" })]).then(
        () => "",
        (error: Error) => error.message,
      );
    // The broker blocks a connection only once it publishes; it may still store what it has read before.
    await until("publishing is refused", async () => (await refusal()).includes("low on memory"));
    const recorded = await recordDeliveries(await namespace.open(), ({ eventType, redelivered }) =>
      eventType === "Probe" || redelivered ? done : retry(10, "it cannot be delayed now"),
    );
    const timesHeard = (eventId: string) =>
      recorded.deliveries.filter((delivery) => delivery.eventId === eventId).length;
    await until("all are delivered and redelivered", () => events.every(({ eventId }) => timesHeard(eventId) >= 2));
  },
  2 * startMs,
);
