import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { metricCatalogue as kernelMetrics } from "@todoke/kernel/telemetry";
import { testDatabase } from "@todoke/kernel/testing";
import * as orders from "@todoke/orders";
import { readSettings } from "@todoke/orders/config";
import {
  clientOrderId,
  type OrderBody,
  parseOrderRequest,
  requestDigest,
  toStoredRequest,
} from "@todoke/orders/order-request";
import { executions, orderStatuses, reasonCodes } from "@todoke/orders/order-status";
import { OrderBody as OrderBodySchema } from "@todoke/orders/schemas";
import { metricCatalogue } from "@todoke/orders/telemetry";
import { expect, test } from "vitest";
import { callsOf } from "./calls.ts";
import { problemsIn } from "./catalogues.ts";
import { expectResponses, serveGuide } from "./guide-calls.ts";
import { blocksOf, rowsOf } from "./markdown.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const apiPage = read("docs/apis/Do-Layer-OrderAPI-Spec.md");
const requestPage = read("docs/architecture/contracts/OrderRequest.md");
const ledgerPage = read("docs/observability/Idempotency-Ledger.md");

const firstCells = (page: string, head: string) => rowsOf(page, head).map(([first = ""]) => first);

/** A table that names a setting in one column and its default in the next. */
const defaultsOf = (page: string) =>
  new Map(
    [...page.matchAll(/`(ORDERS_[A-Z_]+)` \| `?([\d,]+)`? \|/g)].map(([, name = "", value = ""]) => [name, value]),
  );

test("the Order API page lists exactly the routes of the service, and its examples work", async () => {
  await using t = await serveGuide("orders", orders);
  const { paths } = (await (await fetch(`${t.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  // Every service has the others for staff.
  const own = Object.entries(paths).filter(([path]) => !/^\/v1\/admin\/(?!orders\/)/.test(path));
  const served = own.flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`),
  );
  const listed = rowsOf(apiPage, "route").map(([route, , operation]) => `${route} ${operation}`);
  expect(listed.sort()).toEqual(served.sort());
  const placeholders = {
    $ORDERS: t.url,
    $AUTH: "Authorization: Bearer tdk_dev",
    $JSON: "Content-Type: application/json",
  };
  const calls = callsOf(apiPage);
  expect(calls.length).toBeGreaterThan(2);
  await expectResponses(calls, { placeholders, variable: /^(id|instance|.*_at)$/ });
});

test("the Order API page lists exactly the states, reason codes and errors, and the defaults", () => {
  expect(firstCells(apiPage, "status").sort()).toEqual([...orderStatuses].sort());
  expect(firstCells(apiPage, "execution")).toEqual([...executions]);
  const isReasonCode = ([code = ""]: string[]) => /^[A-Z_]+$/.test(code);
  const codes = rowsOf(apiPage, "code");
  expect(codes.filter(isReasonCode).map(([code]) => code)).toEqual([...reasonCodes]);
  const errors = codes.filter((row) => !isReasonCode(row)).map(([code, status]) => `${code} ${status}`);
  const declared = problemsIn(read("services/orders/problems.ts")).map(({ code, status }) => `${code} ${status}`);
  expect(errors.sort()).toEqual(declared.sort());
  const { sender } = readSettings({}, []);
  const defaults = defaultsOf(apiPage);
  expect(defaults.get("ORDERS_SENDER_CONCURRENCY")).toBe(String(sender.concurrency));
  expect(defaults.get("ORDERS_BACKOFF_SECONDS")).toBe(sender.backoffMs.map((ms) => ms / 1_000).join());
  expect(rowsOf(apiPage, "rule").find(([rule]) => rule === "attempts of an order")?.[2]).toBe(
    String(sender.backoffMs.length),
  );
  expect(defaults.get("ORDERS_BROKER_TIMEOUT_MS")).toBe(String(sender.timeoutMs));
});

interface FieldSchema {
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly { readonly const?: string }[];
}

/** One line per field: "side yes BUY,SELL". Bounds and choices are as the schema has them. */
function fieldsOf({ properties = {}, required = [] }: FieldSchema, prefix = ""): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const choices = schema.anyOf?.flatMap((choice) => choice.const ?? []) ?? [];
    const bounds = schema.maxLength === undefined ? schema.maxItems : `${schema.minLength} to ${schema.maxLength}`;
    const line = `${prefix}${name} ${required.includes(name) ? "yes" : "no"} ${bounds ?? choices.join()}`;
    return [line, ...fieldsOf(schema, `${prefix}${name}.`)];
  });
}

function shownField([field, required, type = ""]: string[]): string {
  const [, bounds] = /^(?:string|array), (?:at most )?(.+)$/.exec(type) ?? [];
  const choices = /^[A-Z, ]+$/.test(type) ? type.replaceAll(" ", "") : "";
  return `${field} ${required} ${bounds ?? choices}`;
}

test("the OrderRequest page lists exactly the fields of the schema, and its example is hashed and stored as shown", () => {
  expect(rowsOf(requestPage, "field").map(shownField)).toEqual(fieldsOf(OrderBodySchema as unknown as FieldSchema));
  const [body, stored] = blocksOf(requestPage, "json").map((block) => JSON.parse(block));
  const shown = Object.fromEntries(rowsOf(requestPage, "name"));
  expect(shown).toEqual({
    request_digest: requestDigest(body as OrderBody),
    client_order_id: clientOrderId("dev", body.idempotency_key),
  });
  const order = parseOrderRequest(body);
  if ("notDecimal" in order) throw new Error(order.notDecimal);
  expect(stored).toEqual(JSON.parse(JSON.stringify({ ...toStoredRequest(order), trace_id: body.trace_id })));
});

test("the ledger page lists exactly the columns and states of the table, and its queries run", async () => {
  const own = { name: "orders", dir: new URL("../../services/orders/migrations/", import.meta.url) };
  await using t = await testDatabase({ schema: "orders", sets: [kernelMigrations, own] });
  const { rows } = await t.db.query(
    `select column_name as name from information_schema.columns where table_schema = 'orders' and table_name = 'idempo_ledger'`,
  );
  const listed = firstCells(ledgerPage, "column").flatMap((cell) => cell.split(", "));
  expect(listed.sort()).toEqual(rows.map(({ name }) => name).sort());
  const { rows: checks } = await t.db.query(
    `select pg_get_constraintdef(oid) as states from pg_constraint where conname = 'idempo_ledger_status_is_known'`,
  );
  const states = [...checks[0].states.matchAll(/'(\w+)'/g)].map(([, state]) => state);
  expect(firstCells(ledgerPage, "ledger").sort()).toEqual(states.sort());
  const queries = blocksOf(ledgerPage, "sql");
  expect(queries.length).toBeGreaterThan(2);
  for (const query of queries) expect((await t.db.query(query)).rows).toEqual([]);
});

test("the ledger page has the metrics, the log line and the defaults of the code", () => {
  const metrics: Readonly<Record<string, { kind: string }>> = { ...kernelMetrics, ...metricCatalogue };
  const listed = rowsOf(ledgerPage, "metric");
  expect(listed.length).toBeGreaterThan(5);
  for (const [name = "", kind] of listed) expect(`${name} ${kind}`).toBe(`${name} ${metrics[name]?.kind}`);
  const [line = "{}"] = blocksOf(ledgerPage, "json");
  expect(JSON.parse(line).idempotency_key_hash).toBe(hash("sha256", "k-1", "hex"));
  const { ledgerMs, keepMs } = readSettings({}, []);
  const hourMs = 3_600_000;
  expect([...defaultsOf(ledgerPage)]).toEqual([
    ["ORDERS_LEDGER_HOURS", String(ledgerMs / hourMs)],
    ["ORDERS_KEEP_DAYS", String(keepMs / hourMs / 24)],
  ]);
});
