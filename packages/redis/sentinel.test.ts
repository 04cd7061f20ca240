import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { inspect } from "node:util";
import { type Engine, startEngine, startSentinel } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  connectRedis,
  createScript,
  findPrimary,
  parseRedisUrl,
  type RedisConnection,
  RedisUnavailable,
} from "./index.ts";
import { operatorClient } from "./testing.ts";

// One user on both servers: the password of `Engine.url` differs, and a Sentinel has one login for all.
const login = "todoke:p%40ss";
const settings = {
  user: "todoke on >p@ss ~* &* +@all",
  masteruser: "todoke",
  masterauth: "p@ss",
  "repl-diskless-sync-delay": "0",
};
/** Only the tests fail over: a busy machine must not look like a dead primary. */
const sentinelSettings = { "down-after-milliseconds": "600000", "failover-timeout": "600000" };

const asUser = (engine: Engine) => `redis://${login}@${new URL(engine.url).host}`;
const portOf = (engine: Engine) => Number(new URL(engine.url).port);

const stack = new AsyncDisposableStack();
let one: Engine;
let two: Engine;
let sentinel: Engine;

beforeAll(async () => {
  one = stack.use(await startEngine("redis", { settings }));
  two = stack.use(await startEngine("redis", { settings: { ...settings, replicaof: `127.0.0.1 ${portOf(one)}` } }));
  await until("the replica has the data", async () => (await info(two)).includes("master_link_status:up"));
  sentinel = stack.use(await startSentinel({ name: "main", url: asUser(one) }, { settings: sentinelSettings }));
});
afterAll(() => stack.disposeAsync());

const deadPort = await freePort();

/** The first Sentinel of the list does not run. */
function sentinelUrl(name: string): string {
  const { host, password } = new URL(sentinel.url);
  const parameters = new URLSearchParams({ sentinel: name, sentinel_password: password });
  return `redis://${login}@127.0.0.1:${deadPort},${host}/0?${parameters}`;
}

async function command(server: string, words: string[]): Promise<unknown> {
  const operator = await operatorClient(server);
  try {
    return await operator.sendCommand(words);
  } finally {
    operator.destroy();
  }
}

const info = async (engine: Engine) => String(await command(engine.url, ["INFO", "replication"]));

async function primaryPort(): Promise<number> {
  const [, port] = (await command(sentinel.url, ["SENTINEL", "get-master-addr-by-name", "main"])) as string[];
  return Number(port);
}

/** Asks the Sentinel to promote `next`. It refuses until it has seen that the replica is well. */
async function failOverTo(next: Engine): Promise<void> {
  await until("the Sentinel names the other server", async () => {
    if ((await primaryPort()) === portOf(next)) return true;
    await command(sentinel.url, ["SENTINEL", "FAILOVER", "main"]).catch(() => {});
    return false;
  });
}

/** The port of the server that runs it. It writes, so a replica refuses it. */
const whereAmI = createScript(
  `redis.call('SET', KEYS[1], ARGV[1])
   return { string.match(redis.call('INFO', 'server'), 'tcp_port:(%d+)'), redis.call('GET', KEYS[1]) }`,
);

const run = (connection: RedisConnection, value: string) =>
  connection.run(whereAmI, { keys: ["{test}:key"], arguments: [value] });

/** Waits for a response. Anything but a response or "unavailable" is a fault. */
async function firstResponse(connection: RedisConnection, value: string): Promise<unknown> {
  let response: unknown;
  await until("it responds", async () => {
    try {
      response = await run(connection, value);
      return true;
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error;
      return false;
    }
  });
  return response;
}

/** A long timeout: a busy machine may be slower than a service accepts. */
const connect = (url: string, errors: unknown[]) =>
  connectRedis({ url, requestTimeoutMs: 60_000, onError: (error) => errors.push(error) });

test("a connection through Sentinels runs scripts on the primary and follows it to the other server", async () => {
  const errors: unknown[] = [];
  await using connection = connect(sentinelUrl("main"), errors);
  expect(await run(connection, "a")).toEqual([String(portOf(one)), "a"]);
  expect(errors).toEqual([]);

  await failOverTo(two);
  // What the Sentinel does to the old primary a few seconds later.
  await command(one.url, ["REPLICAOF", "127.0.0.1", String(portOf(two))]);
  expect(await firstResponse(connection, "b")).toEqual([String(portOf(two)), "b"]);

  await until("the old primary is a replica", async () => (await info(one)).includes("master_link_status:up"));
  await two.kill();
  expect(await run(connection, "c").catch((error) => error)).toBeInstanceOf(RedisUnavailable);
  await failOverTo(one);
  expect(await firstResponse(connection, "d")).toEqual([String(portOf(one)), "d"]);
});

test("a server that the Sentinels name is used only while it is the primary", async () => {
  const errors: unknown[] = [];
  await command(one.url, ["REPLICAOF", "127.0.0.1", String(deadPort)]);
  await using connection = connect(sentinelUrl("main"), errors);
  // A replica would run it.
  const reading = connection.run(createScript("return 1"), { keys: ["{test}:key"], arguments: [] });
  expect(await reading.catch((error) => error)).toBeInstanceOf(RedisUnavailable);
  expect(inspect(errors)).toContain(`127.0.0.1:${portOf(one)} is a replica`);
  await command(one.url, ["REPLICAOF", "NO", "ONE"]);
  expect(await firstResponse(connection, "a")).toEqual([String(portOf(one)), "a"]);
});

/** The ids of the connections that ran a script last. */
async function scriptClients(engine: Engine): Promise<readonly string[]> {
  const list = String(await command(engine.url, ["CLIENT", "LIST"]));
  return list.split("\n").flatMap((line) => /^id=(\d+).* cmd=eval/.exec(line)?.[1] ?? []);
}

test("after a server has too few replicas for a write, the Sentinels are asked again", async () => {
  const errors: unknown[] = [];
  await using connection = connect(sentinelUrl("main"), errors);
  await run(connection, "a");
  const before = await scriptClients(one);
  await command(one.url, ["CONFIG", "SET", "min-replicas-to-write", "9"]);
  expect(await run(connection, "b").catch((error) => error)).toBeInstanceOf(RedisUnavailable);
  await command(one.url, ["CONFIG", "SET", "min-replicas-to-write", "0"]);
  expect(await firstResponse(connection, "c")).toEqual([String(portOf(one)), "c"]);
  expect(new Set(await scriptClients(one)).isDisjointFrom(new Set(before))).toBe(true);
});

test("the error names every Sentinel and why it does not know the primary, without a password", async () => {
  const errors: unknown[] = [];
  await using connection = connect(sentinelUrl("other"), errors);
  expect(await run(connection, "a").catch((error) => error)).toBeInstanceOf(RedisUnavailable);
  const output = inspect(errors, { depth: null, showHidden: true });
  expect(output).toContain(`127.0.0.1:${deadPort}: connect ECONNREFUSED`);
  expect(output).toContain(`127.0.0.1:${portOf(sentinel)}: it does not know "other"`);
  for (const password of ["p@ss", "p%40ss", new URL(sentinel.url).password]) expect(output).not.toContain(password);
});

test("a Sentinel that does not respond is left after the timeout, and its connection is closed", async () => {
  const silent = createServer();
  using _ = { [Symbol.dispose]: () => void silent.close() };
  const accepted = once(silent, "connection");
  await once(silent.listen(0, "127.0.0.1"), "listening");
  const { port } = silent.address() as AddressInfo;
  const asking = findPrimary(parseRedisUrl(`redis://127.0.0.1:${port}?sentinel=main`), 500);
  await expect(asking).rejects.toThrow(/no Sentinel knows the primary: 127\.0\.0\.1:\d+: /);
  const [socket] = await accepted;
  await until("it is closed", () => socket.resume().readableEnded || socket.destroyed);
});
