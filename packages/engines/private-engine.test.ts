import { createServer } from "node:net";
import { expect, test } from "vitest";
import { type EngineBinary, type EngineDriver, EngineNotFound } from "./engine.ts";
import { startEngine } from "./index.ts";
import { nats } from "./nats.ts";
import { postgres } from "./postgres/index.ts";
import { startPrivateEngine } from "./private-engine.ts";

/** A driver that first tries `port`, which is in use, as if it had been free a moment ago. */
function withBusyPort(port: number, driver: EngineDriver): EngineDriver {
  return {
    ...driver,
    async prepare(setup) {
      const plan = await driver.prepare(setup);
      let first = true;
      return (free) => {
        const chosen = first ? port : free;
        first = false;
        return plan(chosen);
      };
    },
  };
}

async function findBinaryOf(driver: EngineDriver): Promise<EngineBinary> {
  const found = await driver.findBinary();
  return found instanceof EngineNotFound ? expect.fail(found.message) : found;
}

/** Listens on a port and closes every connection. */
async function occupyPort() {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : expect.fail("it listens on no port"),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

test("an engine tries another port if its port is in use", async () => {
  await using busy = await occupyPort();
  await using engine = await startPrivateEngine(withBusyPort(busy.port, postgres), await findBinaryOf(postgres), {});
  expect(Number(new URL(engine.url).port)).not.toBe(busy.port);
});

test.skipIf((await nats.findBinary()) instanceof EngineNotFound).for([postgres, nats])(
  "another $name server on the port is not mistaken for ours",
  async (driver) => {
    await using theirs = await startEngine(driver.name);
    const port = Number(new URL(theirs.url).port);
    await using ours = await startPrivateEngine(withBusyPort(port, driver), await findBinaryOf(driver), {});
    expect(Number(new URL(ours.url).port)).not.toBe(port);
    expect(ours.pid).not.toBe(theirs.pid);
    await driver.probe(new URL(theirs.url));
  },
);

test("the error names a fixed port that is in use", async () => {
  await using busy = await occupyPort();
  await expect(startEngine("postgres", { port: busy.port })).rejects.toThrow(
    `postgres did not start: port ${busy.port} of 127.0.0.1 is already in use`,
  );
});

test("the error of a server that cannot start contains its output", async () => {
  await expect(startEngine("postgres", { settings: { max_connections: "many" } })).rejects.toThrow(
    'invalid value for parameter "max_connections": "many"',
  );
});

test("a running server cannot be started again", async () => {
  await using engine = await startEngine("postgres");
  await expect(engine.start()).rejects.toThrow("is already running");
});

test("every line that a server prints is logged", async () => {
  const lines: string[] = [];
  await using _engine = await startEngine("postgres", { log: (line) => lines.push(line) });
  await expect.poll(() => lines.join("\n")).toContain("ready to accept connections");
});
