import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { migrate, start } from "@todoke/orders";
import { expect, test } from "vitest";
import { asker } from "./asker.ts";
import { callsOf } from "./calls.ts";
import { blocksOf } from "./markdown.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("docs/guides/orders.md");

/** The service, as `todoke` starts it, with the key of `todoke dev`. */
async function setup() {
  const t = await testDatabase();
  const env = {
    DATABASE_URL: t.url,
    ORDERS_PORT: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `dev=orders:write+read=${hash("sha256", "tdk_dev", "hex")}`,
  };
  await migrate(env, { dryRun: false });
  const service = await start(env, { openBus: async () => memoryBus() });
  return {
    ask: asker({
      $ORDERS: service.url,
      $AUTH: "Authorization: Bearer tdk_dev",
      $JSON: "Content-Type: application/json",
    }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** What is another each time: only that it is there, and of which type, is compared. Digests and names are not among it. */
const unsteady = /^(id|at|by|broker_order_id|detail|instance|.*_at)$/;

const steady = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer, (key, value) => (unsteady.test(key) ? typeof value : value)));

test("every call of the guide to orders is answered as the page says", async () => {
  await using t = await setup();
  const calls = callsOf(page);
  expect(calls.length).toBeGreaterThan(12);
  for (const { command, answer } of calls) {
    let said = await t.ask(command);
    // An order goes its way meanwhile, so a read is asked again; if in vain, the line below shows what it says.
    const isSo = async () => {
      said = await t.ask(command);
      return isDeepStrictEqual(steady(said), steady(answer));
    };
    if (!command.includes("-X "))
      await until("the answer is that of the page", isSo, { withinMs: 20_000 }).catch(() => {});
    expect(steady(said), command).toEqual(steady(answer));
  }
});

test("the instruments that it shows are those of the built-in file", () => {
  const [shown = ""] = blocksOf(page, "yaml");
  expect(shown).toContain("reference_price");
  expect(read("services/orders/instruments/built-in.yaml")).toContain(shown.trim());
});
