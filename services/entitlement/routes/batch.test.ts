import { openWire } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { body, setup } from "../testing.ts";

const item = (action: "grant" | "revoke", idempotency_key: string, more: object = {}) => {
  return { action, idempotency_key, ...body, ...more };
};

test("each item gets the response of its own route, in input order", async () => {
  await using t = await setup();
  const { batch, get } = await t.process();
  const response = await batch([
    item("grant", "key-1"),
    item("revoke", "key-2", { stock_keeping_unit: "item2", reason: "refund" }),
    item("grant", "key-3", { user_id: "ü" }),
  ]);
  expect([response.statusCode, response.headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
  expect(response.json().results).toMatchObject([
    { status: 201, body: { user_id: "u_123", stock_keeping_unit: "item1", status: "ACTIVE", version: 1 } },
    { status: 201, body: { user_id: "u_123", stock_keeping_unit: "item2", status: "REVOKED", version: 1 } },
    { status: 201, body: { user_id: "ü", status: "ACTIVE", version: 1 } },
  ]);
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toEqual(response.json().results[0].body);
  expect(await t.rows()).toEqual({ entitlements: 3, events: 3, audit: 3, keys: 3 });
});

test("an item retried on either route is applied once and gets the same bytes", async () => {
  await using t = await setup();
  const { batch, post } = await t.process();
  const first = (await batch([item("grant", "key-1")])).json().results[0];
  const single = await post("grants", "key-1");
  expect([single.headers["idempotency-replayed"], single.json()]).toEqual(["true", first.body]);
  await post("revokes", "key-2");
  const again = (await batch([item("grant", "key-1"), item("revoke", "key-2"), item("grant", "key-2")])).json();
  expect(again.results).toMatchObject([
    { status: 201, replayed: true, body: first.body },
    { status: 200, replayed: true, body: { version: 2, status: "REVOKED" } },
    { status: 200, body: { version: 3 } }, // the same key on another route is another command
  ]);
  expect(again.results[2]).not.toHaveProperty("replayed");
  expect(await t.rows()).toEqual({ entitlements: 1, events: 3, audit: 3, keys: 3 });
});

test("items of one entitlement, or with one key, are applied in input order", async () => {
  await using t = await setup();
  const { batch } = await t.process();
  const { results } = (
    await batch([
      item("grant", "key-1"),
      item("revoke", "key-2"),
      item("grant", "key-1"), // a replay, not a second grant
      item("grant", "key-1", { purchase_id: "p_457" }), // another body
      item("grant", "key-3"),
    ])
  ).json();
  expect(results).toMatchObject([
    { status: 201, body: { version: 1 } },
    { status: 200, body: { version: 2, status: "REVOKED" } },
    { status: 201, body: { version: 1 }, replayed: true },
    { status: 409, body: { code: "idempotency-conflict", instance: expect.any(String) } },
    { status: 200, body: { version: 3, status: "ACTIVE" } },
  ]);
  expect(await t.rows()).toEqual({ entitlements: 1, events: 3, audit: 3, keys: 3 });
});

test("a hundred items sent to two processes are applied once each", async () => {
  await using t = await setup();
  const [one, two] = [await t.process(), await t.process()];
  const items = Array.from({ length: 100 }, (_, i) => item("grant", `key-${i}`, { user_id: `u_${i % 50}` }));
  const responses = await Promise.all([one.batch(items), two.batch(items)]);
  const bodies = responses.map((response) => response.json().results.map((result: { body: unknown }) => result.body));
  expect(bodies[0]).toEqual(bodies[1]);
  expect(await t.rows()).toEqual({ entitlements: 50, events: 100, audit: 100, keys: 100 });
});

test("a failing item fails alone, and a lost commit is reported for each item", async () => {
  await using t = await setup();
  await t.db.query(`alter table entitlements add constraint no_poison check (source <> 'poison')`);
  await using wire = await openWire(t.url);
  const { batch } = await t.process(t.open({ url: wire.url }));
  const mixed = await batch([item("grant", "key-1"), item("grant", "key-2", { user_id: "u_2", reason: "poison" })]);
  expect(mixed.json().results).toMatchObject([{ status: 201 }, { status: 500, body: { code: "internal" } }]);
  wire.cutNext("change entitlements", "answer");
  const items = [item("grant", "key-3", { user_id: "u_3" }), item("grant", "key-4", { user_id: "u_4" })];
  const unknown = (await batch(items)).json().results;
  expect(unknown).toMatchObject([{ status: 503 }, { body: { code: "outcome-unknown" } }]);
  expect((await batch(items)).json().results).toMatchObject([{ replayed: true }, { replayed: true }]);
});

test("the largest batch fits, and an invalid one is rejected as a whole", async () => {
  await using t = await setup();
  const { batch } = await t.process();
  const long = (i: number) => ({
    user_id: `${i}`.padEnd(128, "届"),
    stock_keeping_unit: "届".repeat(128),
    reason: "届".repeat(64),
    purchase_id: "届".repeat(128),
  });
  const largest = await batch(Array.from({ length: 100 }, (_, i) => item("grant", `${i}`.padEnd(255, "k"), long(i))));
  expect(largest.json().results.map((result: { status: number }) => result.status)).toEqual(Array(100).fill(201));
  const before = await t.rows();
  const cases = [
    [[], "body.items"],
    [Array.from({ length: 101 }, (_, i) => item("grant", `k${i}`)), "body.items"],
    [[item("grant", "good"), item("grant", "a b")], "body.items[1].idempotency_key"],
    [[item("grant", "good"), { ...item("grant", "k"), action: "give" }], "body.items[1].action"],
    [[item("grant", "good", { user_id: "" })], "body.items[0].user_id"],
    [[item("grant", "good", { extra: 1 })], "body.items[0].extra"],
    [[item("grant", "good"), item("revoke", "k", { expires_at: "2999-01-01T00:00:00Z" })], "body.items[1].expires_at"],
  ] as const;
  for (const [items, field] of cases) {
    const response = await batch(items);
    expect(response.statusCode).toBe(400);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  expect(await t.rows()).toEqual(before);
});
