import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { memoryBus } from "@todoke/kernel/bus";
import { testDatabase } from "@todoke/kernel/testing";
import { migrate, start } from "@todoke/orders";
import { expect, test } from "vitest";
import { callsOf } from "./calls.ts";
import { expectAnswers } from "./guide-calls.ts";
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
    url: service.url,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** Digests and names are steady. */
const unsteady = /^(id|at|by|broker_order_id|detail|instance|.*_at)$/;

test("every call of the guide to orders is answered as the page says", async () => {
  await using t = await setup();
  const calls = callsOf(page);
  expect(calls.length).toBeGreaterThan(12);
  const words = {
    $ORDERS: t.url,
    $AUTH: "Authorization: Bearer tdk_dev",
    $JSON: "Content-Type: application/json",
  };
  await expectAnswers(calls, { words, unsteady });
});

test("the instruments that it shows are those of the built-in file", () => {
  const [shown = ""] = blocksOf(page, "yaml");
  expect(shown).toContain("reference_price");
  expect(read("services/orders/instruments/built-in.yaml")).toContain(shown.trim());
});
