import { readFileSync } from "node:fs";
import * as orders from "@todoke/orders";
import { expect, test } from "vitest";
import { callsOf } from "./calls.ts";
import { expectResponses, serveGuide } from "./guide-calls.ts";
import { blocksOf } from "./markdown.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("docs/guides/orders.md");

/** Digests and names are the same in every run. */
const variable = /^(id|at|by|broker_order_id|detail|instance|.*_at)$/;

test("every call of the guide to orders gets the response on the page", async () => {
  await using t = await serveGuide("orders", orders);
  const calls = callsOf(page);
  expect(calls.length).toBeGreaterThan(12);
  const placeholders = {
    $ORDERS: t.url,
    $AUTH: "Authorization: Bearer tdk_dev",
    $JSON: "Content-Type: application/json",
  };
  await expectResponses(calls, { placeholders, variable });
});

test("the guide shows the instruments of the built-in file", () => {
  const [shown = ""] = blocksOf(page, "yaml");
  expect(shown).toContain("reference_price");
  expect(read("services/orders/instruments/built-in.yaml")).toContain(shown.trim());
});
