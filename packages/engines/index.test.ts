import { afterEach, describe, expect, test, vi } from "vitest";
import { type Engine, type EngineName, EngineNotFound, findEngine, startEngine } from "./index.ts";
import { nats } from "./nats.ts";
import { query } from "./postgres/client.ts";
import { postgres } from "./postgres/index.ts";
import { isAlive } from "./process-tree.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { redis } from "./redis.ts";
import { exchange } from "./tcp-exchange.ts";
import { listeningAddresses, startOwner, temporaryFolder, waitUntil } from "./testing.ts";

// RabbitMQ starts in five seconds alone, and takes much longer beside all other tests.
vi.setConfig({ testTimeout: 360_000 });

const drivers = { postgres, nats, redis, rabbitmq };

/** Writes a value to an engine, and reads it again. */
const storage: Partial<
  Record<EngineName, { write: (url: string) => Promise<unknown>; read: (url: string) => Promise<unknown> }>
> = {
  postgres: {
    write: (url) => query(url, "create table kept as select 'still here' as note"),
    read: async (url) => expect(await query(url, "select note from kept")).toEqual([{ note: "still here" }]),
  },
  redis: {
    write: (url) => redisReplies(url, "SET kept here\r\n", "+OK\r\n+OK"),
    read: (url) => redisReplies(url, "GET kept\r\n", "$4\r\nhere"),
  },
  nats: {
    write: (url) => jetStreamReplies(url, "STREAM.CREATE.KEPT", '"did_create":true'),
    read: (url) => jetStreamReplies(url, "STREAM.INFO.KEPT", '"name":"KEPT"'),
  },
};

function redisReplies(url: string, request: string, reply: string) {
  const { password } = new URL(url);
  return replies({ url, request: `AUTH ${password}\r\n${request}`, reply });
}

function jetStreamReplies(url: string, subject: string, reply: string) {
  const body = JSON.stringify({ name: "KEPT", subjects: ["kept"], storage: "file" });
  const publish = `PUB $JS.API.${subject} reply ${body.length}\r\n${body}\r\n`;
  return replies({ url, request: `CONNECT {"verbose":false}\r\nSUB reply 1\r\n${publish}`, reply });
}

function replies({ url, request, reply }: { url: string; request: string; reply: string }) {
  const parse = (received: Buffer) => received.includes(reply) || undefined;
  const { hostname: host, port } = new URL(url);
  return exchange({ host, port: Number(port), request, parse });
}

const pidOf = (engine: Engine): number => engine.pid ?? expect.fail(`${engine.name} does not run`);

afterEach(() => vi.unstubAllEnvs());

for (const [name, driver] of Object.entries(drivers)) {
  const here = !((await driver.findBinary()) instanceof EngineNotFound);

  describe.skipIf(!here)(name, () => {
    test("a killed engine starts again with its data, and another one beside it keeps running", async () => {
      await using one = await startEngine(driver.name);
      await using other = await startEngine(driver.name);
      expect(other.url).not.toBe(one.url);
      await storage[driver.name]?.write(one.url);
      const [killed, untouched] = [pidOf(one), pidOf(other)];

      await one.kill();
      expect(isAlive(killed)).toBe(false);
      expect(one.pid).toBeUndefined();
      await expect(driver.probe(new URL(one.url))).rejects.toThrow("ECONNREFUSED");

      await one.start();
      expect(pidOf(one)).not.toBe(killed);
      expect(await driver.probe(new URL(one.url))).toMatchObject({ version: one.version });
      await storage[driver.name]?.read(one.url);
      expect(pidOf(other)).toBe(untouched);
      await driver.probe(new URL(other.url));
    });

    test("a kill -9 of the owner leaves no process and no folder", async () => {
      using tmp = await temporaryFolder();
      await using owner = await startOwner(driver.name, { tmp: tmp.path });
      expect(tmp.entries()).toHaveLength(1);
      if (process.platform === "linux") expect(new Set(listeningAddresses(owner.pid))).toEqual(new Set(["0100007F"]));

      await owner.end("SIGKILL");
      await waitUntil(`${name} is gone`, () => !isAlive(owner.pid));
      await waitUntil("its folder is gone", () => tmp.entries().length === 0);
    });
  });
}

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s to the owner stops its engine", async (signal) => {
  using tmp = await temporaryFolder();
  await using owner = await startOwner("postgres", { tmp: tmp.path });
  await owner.end(signal);
  await waitUntil("the engine is gone", () => !isAlive(owner.pid));
  await waitUntil("its folder is gone", () => tmp.entries().length === 0);
});

test("a Ctrl-C that the owner survives does not reach its engine", async () => {
  using tmp = await temporaryFolder();
  await using owner = await startOwner("postgres", { tmp: tmp.path, ignoresSigint: true });
  await owner.interruptGroup();
  expect(await query(owner.url, "select 1 as one")).toHaveLength(1);
});

test("disposing an engine leaves no process and no folder", async () => {
  using tmp = await temporaryFolder();
  vi.stubEnv("TMPDIR", tmp.path);
  const engine = await startEngine("postgres");
  const pid = pidOf(engine);
  expect(tmp.entries()).toHaveLength(1);
  await engine[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(false);
  expect(tmp.entries()).toEqual([]);
});

test("an external server is used and never stopped", async () => {
  await using external = await startEngine("postgres");
  vi.stubEnv("TEST_POSTGRES_URL", external.url);
  const found = await findEngine("postgres");
  if (found instanceof EngineNotFound) expect.fail(found.message);
  expect(found).toMatchObject({ url: external.url, version: external.version, pid: undefined });
  expect(found.origin).toBe("environment (TEST_POSTGRES_URL)");

  await expect(found.kill()).rejects.toThrow("an external server");
  await found[Symbol.asyncDispose]();
  expect(await query(external.url, "select 1 as one")).toHaveLength(1);
});

test.each([
  ["postgres", "postgres://me:secret@127.0.0.1:1/mine"],
  ["nats", "nats://me:secret@127.0.0.1:1"],
  ["rabbitmq", "amqp://me:secret@127.0.0.1:1"],
  ["redis", "redis://me:secret@127.0.0.1:1"],
] as const)(
  "an external %s that cannot be reached is reported with its variable and without its password",
  async (name, url) => {
    const variable = `TEST_${name.toUpperCase()}_URL`;
    vi.stubEnv(variable, url);
    const found = await findEngine(name);
    expect(found).toBeInstanceOf(EngineNotFound);
    expect(Object(found).message).toContain(`${variable} is set, but connect ECONNREFUSED 127.0.0.1:1.`);
    expect(Object(found).message).not.toContain("secret");
  },
);
