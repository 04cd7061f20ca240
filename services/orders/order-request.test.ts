import { hash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { clientOrderId, keptRequest, type OrderBody, orderRequest, requestDigest } from "./order-request.ts";

const body: OrderBody = {
  idempotency_key: "key-1",
  order_id: "o-1",
  instrument: "BTC-USD",
  side: "BUY",
  qty: 0.5,
  price: "30000.10",
  time_in_force: "GTC",
  tags: ["Café", "desk 1"],
  requested_at: "2026-01-31T09:30:00Z",
  risk_constraints: { max_notional: 20_000, max_slippage_bps: 10 },
  trace_id: "t-1",
};

test("the digest of a request is what it always was", () => {
  // Written out by hand: fields sorted, no white space, text composed, trace_id and idempotency_key left out.
  const canonical =
    '{"instrument":"BTC-USD","order_id":"o-1","price":"30000.10","qty":0.5,"requested_at":"2026-01-31T09:30:00Z",' +
    '"risk_constraints":{"max_notional":20000,"max_slippage_bps":10},"side":"BUY","tags":["Café","desk 1"],' +
    '"time_in_force":"GTC"}';
  expect(requestDigest(body)).toBe(`sha256:${hash("sha256", canonical.normalize("NFC"), "hex")}`);
  expect(requestDigest(body)).toBe("sha256:8022e6ede76b3f58746160a8976158e7c73b239df62b624c920192e2b6e5dc5d");
  const least = { idempotency_key: "k", order_id: "1", instrument: "X", side: "SELL", qty: "1", price: null } as const;
  expect(requestDigest({ ...least, requested_at: "2026-01-01T00:00:00Z" })).toBe(
    "sha256:a28a1b2b7f7a933cfbd0ef02bcc0d3c7c7dd2fecddbc912938642ab5e2c911ef",
  );
});

test("the same request in another trace, under another key, in another order or form of characters has the same digest", () => {
  const digest = requestDigest(body);
  const { trace_id: _, ...untraced } = body;
  expect(requestDigest(untraced)).toBe(digest);
  expect(requestDigest({ ...body, trace_id: "t-2", idempotency_key: "key-2" })).toBe(digest);
  expect(requestDigest(Object.fromEntries(Object.entries(body).reverse()) as unknown as OrderBody)).toBe(digest);
  expect(requestDigest({ ...body, tags: ["Cafe\u0301", "desk 1"] })).toBe(digest);
});

test("another value in any field is another request", () => {
  const others: Partial<OrderBody>[] = [
    { order_id: "o-2" },
    { user_id: "u_1" },
    { instrument: "ETH-USD" },
    { side: "SELL" },
    { qty: 0.6 },
    { price: null },
    { time_in_force: "IOC" },
    { tags: ["desk 1", "Café"] },
    { requested_at: "2026-01-31T09:30:01Z" },
    { risk_constraints: {} },
  ];
  const digests = others.map((other) => requestDigest({ ...body, ...other }));
  expect(new Set([...digests, requestDigest(body)]).size).toBe(others.length + 1);
});

test("the broker knows an order by the same name for ever, and no two orders share one", () => {
  expect(clientOrderId("desk", "key-1")).toBe("tdk-39e8846d4c33908ffd44b54bcef11e563bb7368b");
  expect(clientOrderId("user:0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f", "~!@#")).toBe(
    "tdk-45615de035f25a8b025225d21d34143a598bf5b3",
  );
  const name = fc.string({ minLength: 1, unit: "grapheme-ascii" });
  fc.assert(
    fc.property(name, name, name, name, (caller, key, otherCaller, otherKey) => {
      const same = caller === otherCaller && key === otherKey;
      expect(clientOrderId(caller, key) === clientOrderId(otherCaller, otherKey)).toBe(same);
      expect(clientOrderId(caller, key)).toMatch(/^tdk-[0-9a-f]{40}$/);
    }),
  );
});

test("what is kept says every number as text, and fills in what was left out", () => {
  const order = orderRequest({ ...body, tags: ["Cafe\u0301"], price: "30000.10" });
  if ("notDecimal" in order) throw new Error("it is one");
  expect(JSON.parse(JSON.stringify(keptRequest(order)))).toEqual({
    order_id: "o-1",
    instrument: "BTC-USD",
    side: "BUY",
    qty: "0.5",
    price: "30000.1",
    time_in_force: "GTC",
    tags: ["Café"],
    requested_at: "2026-01-31T09:30:00Z",
    risk_constraints: { max_notional: "20000", max_slippage_bps: 10 },
  });
  const { time_in_force: _, tags: __, ...shorter } = body;
  expect(orderRequest(shorter)).toMatchObject({ time_in_force: "IOC", tags: [] });
  expect(orderRequest({ ...body, qty: 1e-30 })).toEqual({ notDecimal: "qty" });
});
