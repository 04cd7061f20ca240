import { expect, test } from "vitest";
import { type OrderBody, parseOrderRequest } from "../order/order-request.ts";
import { checkOrder, InstrumentsError, openInstruments, readInstruments } from "./index.ts";

const file = (...lines: string[]) => ["instruments:", "  A:", ...lines.map((line) => `    ${line}`)].join("\n");
const good = ["min_qty: 0.3", "step: 0.1", "max_qty: 10", "max_notional: 1000"];

const errorsOf = (text: string): readonly string[] => {
  try {
    readInstruments(text, "i.yaml");
    return [];
  } catch (error) {
    if (error instanceof InstrumentsError) return error.errors;
    throw error;
  }
};

const body = {
  idempotency_key: "k",
  order_id: "o",
  instrument: "A",
  side: "BUY",
  requested_at: "2026-01-01T00:00:00Z",
};

const problemCode = (text: string, more: Partial<OrderBody>, limitsSlippage = false) => {
  const order = parseOrderRequest({ ...body, qty: 1, price: 1, ...more } as OrderBody);
  if ("notDecimal" in order) throw new Error(order.notDecimal);
  return checkOrder(order, { ...readInstruments(text, "i.yaml"), limitsSlippage })?.code;
};

test("the built-in instruments can be read", () => {
  const { byName, ordersPerSecond } = openInstruments();
  expect([...byName.keys()]).toEqual(["BTC-USD", "ETH-USD", "USD-JPY"]);
  expect(ordersPerSecond).toBe(1000);
  expect(byName.get("BTC-USD")?.step).toEqual({ digits: 1n, scale: 4 });
});

test("all errors of a file are reported together, in order, each with its line", () => {
  const text = `limits: { orders_per_second: many }
instruments:
  A B: { min_qty: 1, step: 1, max_qty: 1, max_notional: 1 }
  B:
    min_qty: 0.25
    step: 0.1
    max_qty: 0.2
    max_notional: 1e3
    tock: 1
  C: { min_qty: 0.25, step: 0.1, max_qty: 0.2, max_notional: 1 }
  D: here
`;
  expect(errorsOf(text)).toEqual([
    'i.yaml:1: limits.orders_per_second should be a whole number from 1 to 1000000, and is "many"',
    "i.yaml:3: instruments.A B should be named with letters, digits and . _ : / -, at most 32 characters",
    'i.yaml:8: instruments.B.max_notional should be a decimal larger than 0, and is "1e3"',
    "i.yaml:9: instruments.B.tock is not known here; did you mean tick?",
    "i.yaml:10: instruments.C.min_qty should be a multiple of 0.1",
    "i.yaml:10: instruments.C.max_qty should not be less than min_qty (0.25)",
    "i.yaml:11: instruments.D should be a map: names, each with its value",
    "i.yaml:11: instruments.D lacks min_qty",
    "i.yaml:11: instruments.D lacks step",
    "i.yaml:11: instruments.D lacks max_qty",
    "i.yaml:11: instruments.D lacks max_notional",
  ]);
});

test.each([
  ["an empty file", "", "i.yaml:1: the file should have at least one instrument, under instruments"],
  ["a list", "- 1", "i.yaml:1: the file should be a map"],
  ["no YAML", "instruments: [1", "i.yaml:1: cannot be read: "],
  ["an alias", `${file(...good)}\n  B: *A`, "i.yaml:7: "],
  ["a large file", `#${"x".repeat(1024 * 1024)}`, "i.yaml:1: the file is larger than"],
])("%s is rejected", (_, text, error) => {
  expect(errorsOf(text).join("\n")).toContain(error);
});

test("an order must keep minimum, step, tick and limits, to the last digit", () => {
  const plain = file(...good, "tick: 0.05");
  expect(problemCode(plain, {})).toBeUndefined();
  expect(problemCode(plain, { instrument: "B" })).toBe("instrument-not-allowed");
  expect(problemCode(plain, { instrument: "a" })).toBe("instrument-not-allowed");
  expect(problemCode(plain, { qty: "0.3" })).toBeUndefined();
  expect(problemCode(plain, { qty: 0.7 })).toBeUndefined(); // 0.7 % 0.1 is not 0 for doubles
  expect(problemCode(plain, { qty: "0.299999999999999999" })).toBe("quantity-not-allowed");
  expect(problemCode(plain, { qty: "0.300000000000000001" })).toBe("quantity-not-allowed");
  expect(problemCode(plain, { qty: "10" })).toBeUndefined();
  expect(problemCode(plain, { qty: "10.1" })).toBe("limit-exceeded");
  expect(problemCode(plain, { price: "1.15" })).toBeUndefined();
  expect(problemCode(plain, { price: "1.151" })).toBe("price-not-allowed");
  expect(problemCode(plain, { qty: 10, price: 100 })).toBeUndefined();
  expect(problemCode(plain, { qty: 10, price: "100.05" })).toBe("limit-exceeded");
  expect(problemCode(plain, { risk_constraints: { max_notional: 1 } })).toBeUndefined();
  expect(problemCode(plain, { risk_constraints: { max_notional: "0.999999999999999999" } })).toBe("limit-exceeded");
});

test("a market order is checked at the reference price, and rejected without one", () => {
  expect(problemCode(file(...good), { price: null })).toBe("price-required");
  const known = file(...good, "reference_price: 500");
  expect(problemCode(known, { price: null, qty: 2 })).toBeUndefined();
  expect(problemCode(known, { price: null, qty: "2.1" })).toBe("limit-exceeded");
  expect(problemCode(known, { price: null, risk_constraints: { max_notional: 499 } })).toBe("limit-exceeded");
});

test("a market order with max_slippage_bps is rejected if the broker does not limit slippage", () => {
  const known = file(...good, "reference_price: 500");
  const limited = { price: null, risk_constraints: { max_slippage_bps: 0 } };
  expect(problemCode(known, limited)).toBe("slippage-not-limited");
  expect(problemCode(known, limited, true)).toBeUndefined();
  expect(problemCode(known, { ...limited, price: 500 })).toBeUndefined();
});
