import { afterEach, describe, expect, test, vi } from "vitest";
import { type Engine, type EngineName, findEngine, NotFound, startEngine } from "./index.ts";
import { nats } from "./nats.ts";
import { query } from "./postgres/client.ts";
import { postgres } from "./postgres/index.ts";
import { isAlive } from "./process-tree.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { redis } from "./redis.ts";
import { becomes, listeningAddresses, startOwner, temporaryFolder } from "./testing.ts";
import { exchange } from "./wire.ts";

// RabbitMQ starts in five seconds alone, and in many more beside all the other tests.
vi.setConfig({ testTimeout: 360_000 });

const recipes = { postgres, nats, redis, rabbitmq };

/** Writes something into an engine, and finds it again. */
const memory: Partial<
  Record<EngineName, { keep: (url: string) => Promise<unknown>; find: (url: string) => Promise<unknown> }>
> = {
  postgres: {
    keep: (url) => query(url, "create table kept as select 'still here' as note"),
    find: async (url) => expect(await query(url, "select note from kept")).toEqual([{ note: "still here" }]),
  },
  redis: {
    keep: (url) => redisSays(url, "SET kept here\r\n", "+OK\r\n+OK"),
    find: (url) => redisSays(url, "GET kept\r\n", "$4\r\nhere"),
  },
  nats: {
    keep: (url) => jetStreamSays(url, "STREAM.CREATE.KEPT", '"did_create":true'),
    find: (url) => jetStreamSays(url, "STREAM.INFO.KEPT", '"name":"KEPT"'),
  },
};

function redisSays(url: string, request: string, answer: string) {
  const { password } = new URL(url);
  return says({ url, hello: `AUTH ${password}\r\n${request}`, answer });
}

function jetStreamSays(url: string, subject: string, answer: string) {
  const body = JSON.stringify({ name: "KEPT", subjects: ["kept"], storage: "file" });
  const publish = `PUB $JS.API.${subject} reply ${body.length}\r\n${body}\r\n`;
  return says({ url, hello: `CONNECT {"verbose":false}\r\nSUB reply 1\r\n${publish}`, answer });
}

function says({ url, hello, answer }: { url: string; hello: string; answer: string }) {
  const read = (received: Buffer) => received.includes(answer) || undefined;
  return exchange({ url: new URL(url), defaultPort: 0, tls: false, hello, read });
}

const pidOf = (engine: Engine): number => engine.pid ?? expect.fail(`${engine.name} does not run`);

afterEach(() => vi.unstubAllEnvs());

for (const [name, recipe] of Object.entries(recipes)) {
  const here = !((await recipe.locate()) instanceof NotFound);

  describe.skipIf(!here)(name, () => {
    test("one is killed with -9 and comes back with its data, while another beside it notices nothing", async () => {
      await using one = await startEngine(recipe.name);
      await using other = await startEngine(recipe.name);
      expect(other.url).not.toBe(one.url);
      await memory[recipe.name]?.keep(one.url);
      const [killed, untouched] = [pidOf(one), pidOf(other)];

      await one.kill();
      expect(isAlive(killed)).toBe(false);
      expect(one.pid).toBeUndefined();
      await expect(recipe.ask(new URL(one.url))).rejects.toThrow("ECONNREFUSED");

      await one.start();
      expect(pidOf(one)).not.toBe(killed);
      expect(await recipe.ask(new URL(one.url))).toMatchObject({ version: one.version });
      await memory[recipe.name]?.find(one.url);
      expect(pidOf(other)).toBe(untouched);
      await recipe.ask(new URL(other.url));
    });

    test("its owner is killed with -9, and no process and no folder of it is left", async () => {
      using tmp = await temporaryFolder();
      await using owner = await startOwner(recipe.name, { tmp: tmp.path });
      expect(tmp.entries()).toHaveLength(1);
      if (process.platform === "linux") expect(new Set(listeningAddresses(owner.pid))).toEqual(new Set(["0100007F"]));

      await owner.end("SIGKILL");
      await becomes(`${name} is gone`, () => !isAlive(owner.pid));
      await becomes("its folder is gone", () => tmp.entries().length === 0);
    });
  });
}

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "an owner that ends by %s takes its engine with it",
  async (signal) => {
    using tmp = await temporaryFolder();
    await using owner = await startOwner("postgres", { tmp: tmp.path });
    await owner.end(signal);
    await becomes("the engine is gone", () => !isAlive(owner.pid));
    await becomes("its folder is gone", () => tmp.entries().length === 0);
  },
);

test("a Ctrl-C that the owner survives does not reach its engine", async () => {
  using tmp = await temporaryFolder();
  await using owner = await startOwner("postgres", { tmp: tmp.path, deaf: true });
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

test("a server that the environment names is used and left alone", async () => {
  await using theirs = await startEngine("postgres");
  vi.stubEnv("TEST_POSTGRES_URL", theirs.url);
  const found = await findEngine("postgres");
  if (found instanceof NotFound) expect.fail(found.toString());
  expect(found).toMatchObject({ url: theirs.url, version: theirs.version, pid: undefined });
  expect(found.origin).toBe("environment (TEST_POSTGRES_URL)");

  await expect(found.kill()).rejects.toThrow("not ours");
  await found[Symbol.asyncDispose]();
  expect(await query(theirs.url, "select 1 as one")).toHaveLength(1);
});

test.each([
  ["postgres", "postgres://me:secret@127.0.0.1:1/mine"],
  ["nats", "nats://me:secret@127.0.0.1:1"],
  ["rabbitmq", "amqp://me:secret@127.0.0.1:1"],
  ["redis", "redis://me:secret@127.0.0.1:1"],
] as const)(
  "a %s that the environment names in vain is reported with the variable, not with the password",
  async (name, url) => {
    const variable = `TEST_${name.toUpperCase()}_URL`;
    vi.stubEnv(variable, url);
    const found = await findEngine(name);
    expect(found).toBeInstanceOf(NotFound);
    expect(String(found)).toContain(`${variable} is set, but connect ECONNREFUSED 127.0.0.1:1.`);
    expect(String(found)).not.toContain("secret");
  },
);
