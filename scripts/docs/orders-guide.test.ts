import { readFileSync } from "node:fs";
import * as orders from "@todoke/orders";
import { expect, test } from "vitest";
import { callsOf } from "./calls.ts";
import { expectAnswers, serveGuide } from "./guide-calls.ts";
import { blocksOf } from "./markdown.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("docs/guides/orders.md");

/** Digests and names are steady. */
const unsteady = /^(id|at|by|broker_order_id|detail|instance|.*_at)$/;

test("every call of the guide to orders is answered as the page says", async () => {
  await using t = await serveGuide("orders", orders);
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
