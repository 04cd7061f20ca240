import { inspect } from "node:util";
import { type Engine, startEngine } from "@todoke/engines";
import { isUnavailable } from "@todoke/kernel/db";
import { openWire, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRedisLink, type RedisLink, RedisUnavailable, scriptOf } from "./index.ts";
import { operatorClient } from "./testing.ts";

// A server of their own: these tests flush its scripts, fill it and turn it into a replica.
let server: Engine;
beforeAll(async () => {
  server = await startEngine("redis");
});
afterAll(() => server?.[Symbol.asyncDispose]());

const echo = scriptOf("return { KEYS[1], ARGV[1], ARGV[2] }");
const write = scriptOf("return redis.call('SET', KEYS[1], ARGV[1])");
const input = (...args: string[]) => ({ keys: ["{link}:key"], arguments: args });

/** Patient, but where the test is about silence: a busy machine may stand still for longer than a service waits. */
function setup(url = server.url, answerWithinMs = 60_000) {
  const errors: unknown[] = [];
  return { errors, link: openRedisLink({ url, answerWithinMs, onError: (error) => errors.push(error) }) };
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error) => error,
  );

const answers = (link: RedisLink) => async () => (await failureOf(link.run(echo, input("a")))) === undefined;

test("a script is given its keys and arguments, also by a server that has forgotten all scripts", async () => {
  const { link } = setup();
  await using _ = link;
  const operator = await operatorClient(server.url);
  using _operator = { [Symbol.dispose]: () => operator.destroy() };
  expect(await link.run(echo, input("a", ""))).toEqual(["{link}:key", "a", ""]);
  expect(await operator.scriptExists(echo.sha1)).toEqual([1]);
  await operator.scriptFlush();
  expect(await link.run(echo, input("b", "c"))).toEqual(["{link}:key", "b", "c"]);
});

test("what the server answers to a faulty script is a fault of ours, and not that it cannot be asked", async () => {
  const { link } = setup();
  await using _ = link;
  const failure = await failureOf(link.run(scriptOf("return redis.call('NOSUCH')"), input()));
  expect(failure).toMatchObject({ message: expect.stringContaining("Unknown Redis command") });
  expect(failure).not.toBeInstanceOf(RedisUnavailable);
  expect(isUnavailable(failure)).toBe(false);
});

test("while the server is down every call fails, and once it is back the next works, without a restart", async () => {
  await using engine = await startEngine("redis");
  const { link, errors } = setup(engine.url);
  await using _ = link;
  expect(await answers(link)()).toBe(true);
  await engine.kill();
  const meanwhile = setup(engine.url);
  await using _meanwhile = meanwhile.link;
  const failures = await Promise.all([link, meanwhile.link].map((each) => failureOf(each.run(echo, input("a")))));
  for (const failure of failures) {
    expect(failure).toBeInstanceOf(RedisUnavailable);
    expect(isUnavailable(failure)).toBe(true);
  }
  await engine.start();
  for (const each of [link, meanwhile.link]) await until("it is reached again", answers(each));
  const told = inspect([failures, errors, meanwhile.errors], { depth: null, showHidden: true });
  expect(told).toContain("the connection to Redis failed, and is tried again");
  expect(told).not.toContain(new URL(engine.url).password);
});

test("a server that goes silent is given up for a new connection, and nobody waits for it for ever", async () => {
  await using wire = await openWire(server.url);
  const { link } = setup(wire.url, 2_000);
  await using _ = link;
  await until("it is reached", answers(link));
  wire.swallow();
  for (const argument of ["over the old connection", "over the new one"])
    expect(await failureOf(link.run(echo, input(argument)))).toBeInstanceOf(RedisUnavailable);
  wire.listenAgain();
  await until("it is reached again", answers(link));
});

test("a server that is full, or only a replica, is one that cannot be asked now", async () => {
  const { link } = setup();
  await using _ = link;
  const operator = await operatorClient(server.url);
  using _operator = { [Symbol.dispose]: () => operator.destroy() };
  await operator.configSet("maxmemory", "1");
  const full = await failureOf(link.run(write, input("a")));
  await operator.configSet("maxmemory", "0");
  await operator.sendCommand(["REPLICAOF", "127.0.0.1", "1"]);
  const replica = await failureOf(link.run(write, input("a")));
  await operator.sendCommand(["REPLICAOF", "NO", "ONE"]);
  expect(await link.run(write, input("a"))).toBe("OK");
  for (const failure of [full, replica]) expect(failure).toBeInstanceOf(RedisUnavailable);
});

test("a link that was closed fails at once and tries nothing more", async () => {
  const { link, errors } = setup();
  expect(await answers(link)()).toBe(true);
  await link[Symbol.asyncDispose]();
  expect(await failureOf(link.run(echo, input("a")))).toBeInstanceOf(RedisUnavailable);
  expect(errors).toEqual([]);
});
