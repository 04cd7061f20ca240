import { inspect } from "node:util";
import { type Engine, startEngine } from "@todoke/engines";
import { isUnavailable } from "@todoke/kernel/db";
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectRedis, createScript, type RedisConnection, RedisUnavailable } from "./index.ts";
import { operatorClient } from "./testing.ts";

// A private server: these tests flush its scripts, fill it and make it a replica.
let server: Engine;
beforeAll(async () => {
  server = await startEngine("redis");
});
afterAll(() => server?.[Symbol.asyncDispose]());

const echo = createScript("return { KEYS[1], ARGV[1], ARGV[2] }");
const write = createScript("return redis.call('SET', KEYS[1], ARGV[1])");
const input = (...args: string[]) => ({ keys: ["{test}:key"], arguments: args });

/** A long timeout by default: a busy machine may be slower than a service accepts. */
function setup(url = server.url, requestTimeoutMs = 60_000) {
  const errors: unknown[] = [];
  return { errors, connection: connectRedis({ url, requestTimeoutMs, onError: (error) => errors.push(error) }) };
}

const catchError = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error) => error,
  );

const responds = (connection: RedisConnection) => async () =>
  (await catchError(connection.run(echo, input("a")))) === undefined;

test("a script gets its keys and arguments, also after the server has lost all scripts", async () => {
  const { connection } = setup();
  await using _ = connection;
  const operator = await operatorClient(server.url);
  using _operator = { [Symbol.dispose]: () => operator.destroy() };
  expect(await connection.run(echo, input("a", ""))).toEqual(["{test}:key", "a", ""]);
  expect(await operator.scriptExists(echo.sha1)).toEqual([1]);
  await operator.scriptFlush();
  expect(await connection.run(echo, input("b", "c"))).toEqual(["{test}:key", "b", "c"]);
});

test("an error in a script is thrown as it is, not as unavailable", async () => {
  const { connection } = setup();
  await using _ = connection;
  const failure = await catchError(connection.run(createScript("return redis.call('NOSUCH')"), input()));
  expect(failure).toMatchObject({ message: expect.stringContaining("Unknown Redis command") });
  expect(failure).not.toBeInstanceOf(RedisUnavailable);
  expect(isUnavailable(failure)).toBe(false);
});

test("calls fail while the server is down and work once it is back", async () => {
  await using engine = await startEngine("redis");
  const { connection, errors } = setup(engine.url);
  await using _ = connection;
  expect(await responds(connection)()).toBe(true);
  await engine.kill();
  const whileDown = setup(engine.url);
  await using _whileDown = whileDown.connection;
  const failures = await Promise.all(
    [connection, whileDown.connection].map((each) => catchError(each.run(echo, input("a")))),
  );
  for (const failure of failures) {
    expect(failure).toBeInstanceOf(RedisUnavailable);
    expect(isUnavailable(failure)).toBe(true);
  }
  await engine.start();
  for (const each of [connection, whileDown.connection]) await until("it responds again", responds(each));
  const output = inspect([failures, errors, whileDown.errors], { depth: null, showHidden: true });
  expect(output).toContain("the connection to Redis failed; retrying");
  expect(output).not.toContain(new URL(engine.url).password);
});

test("a silent server gets a new connection, and calls fail within the timeout", async () => {
  await using wire = await openFaultProxy(server.url);
  const { connection } = setup(wire.url, 2_000);
  await using _ = connection;
  await until("it responds", responds(connection));
  wire.dropAll();
  for (const argument of ["over the old connection", "over the new one"])
    expect(await catchError(connection.run(echo, input(argument)))).toBeInstanceOf(RedisUnavailable);
  wire.stopDropping();
  await until("it responds again", responds(connection));
});

test("a server that is full, or a replica, is unavailable", async () => {
  const { connection } = setup();
  await using _ = connection;
  const operator = await operatorClient(server.url);
  using _operator = { [Symbol.dispose]: () => operator.destroy() };
  await operator.configSet("maxmemory", "1");
  const full = await catchError(connection.run(write, input("a")));
  await operator.configSet("maxmemory", "0");
  await operator.sendCommand(["REPLICAOF", "127.0.0.1", "1"]);
  const replica = await catchError(connection.run(write, input("a")));
  await operator.sendCommand(["REPLICAOF", "NO", "ONE"]);
  expect(await connection.run(write, input("a"))).toBe("OK");
  for (const failure of [full, replica]) expect(failure).toBeInstanceOf(RedisUnavailable);
});

test("a closed connection fails at once and does not reconnect", async () => {
  const { connection, errors } = setup();
  expect(await responds(connection)()).toBe(true);
  await connection[Symbol.asyncDispose]();
  expect(await catchError(connection.run(echo, input("a")))).toBeInstanceOf(RedisUnavailable);
  expect(errors).toEqual([]);
});
