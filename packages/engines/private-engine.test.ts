import { createServer } from "node:net";
import { expect, test } from "vitest";
import { NotFound, type Program, type Recipe } from "./engine.ts";
import { startEngine } from "./index.ts";
import { nats } from "./nats.ts";
import { postgres } from "./postgres/index.ts";
import { startPrivate } from "./private-engine.ts";

/** A recipe that first goes to `port`, whoever is there, as if it had been free a moment ago. */
function lateFor(port: number, recipe: Recipe): Recipe {
  return {
    ...recipe,
    async prepare(site) {
      const launch = await recipe.prepare(site);
      let first = true;
      return (free) => {
        const chosen = first ? port : free;
        first = false;
        return launch(chosen);
      };
    },
  };
}

async function program(recipe: Recipe): Promise<Program> {
  const found = await recipe.locate();
  return found instanceof NotFound ? expect.fail(found.toString()) : found;
}

/** Takes a port and answers nobody. */
async function squatter() {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : expect.fail("it listens on no port"),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

test("a port that somebody else takes first is given up for another", async () => {
  await using taken = await squatter();
  await using engine = await startPrivate(lateFor(taken.port, postgres), await program(postgres), {});
  expect(Number(new URL(engine.url).port)).not.toBe(taken.port);
});

test.skipIf((await nats.locate()) instanceof NotFound).for([postgres, nats])(
  "a $name server that took the port first is not mistaken for ours",
  async (recipe) => {
    await using theirs = await startEngine(recipe.name);
    const port = Number(new URL(theirs.url).port);
    await using ours = await startPrivate(lateFor(port, recipe), await program(recipe), {});
    expect(Number(new URL(ours.url).port)).not.toBe(port);
    expect(ours.pid).not.toBe(theirs.pid);
    await recipe.ask(new URL(theirs.url));
  },
);

test("a fixed port that is taken is named in the error", async () => {
  await using taken = await squatter();
  await expect(startEngine("postgres", { port: taken.port })).rejects.toThrow(
    `postgres did not start: port ${taken.port} of 127.0.0.1 is in use already`,
  );
});

test("a server that cannot start says why in its own words", async () => {
  await expect(startEngine("postgres", { settings: { max_connections: "many" } })).rejects.toThrow(
    'invalid value for parameter "max_connections": "many"',
  );
});

test("a server that runs is not started twice", async () => {
  await using engine = await startEngine("postgres");
  await expect(engine.start()).rejects.toThrow("runs already");
});

test("what a server prints is heard", async () => {
  const lines: string[] = [];
  await using _engine = await startEngine("postgres", { log: (line) => lines.push(line) });
  await expect.poll(() => lines.join("\n")).toContain("ready to accept connections");
});
