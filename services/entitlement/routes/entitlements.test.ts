import { decodeEvent, encodeEvent } from "@todoke/contracts";
import { openWire } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { body, setup } from "../testing.ts";

test("grants and revokes respond as in the contract, with a rising version", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  const steps = [
    ["grants", 201, "ACTIVE", 1],
    ["grants", 200, "ACTIVE", 2],
    ["revokes", 200, "REVOKED", 3],
    ["grants", 200, "ACTIVE", 4],
  ] as const;
  for (const [path, code, status, version] of steps) {
    const response = await post(path, `key-${version}`);
    expect(response.statusCode).toBe(code);
    expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(response.json()).toEqual({
      user_id: "u_123",
      stock_keeping_unit: "item1",
      status,
      version,
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
  }
  const never = await post("revokes", "never-granted", { ...body, stock_keeping_unit: "item2" });
  expect([never.statusCode, never.json().status]).toEqual([201, "REVOKED"]);
  const listed = (await get("/v1/users/u_123/entitlements")).json();
  expect(listed.entitlements).toMatchObject([
    { stock_keeping_unit: "item1", status: "ACTIVE", version: 4 },
    { stock_keeping_unit: "item2", status: "REVOKED", version: 1 },
  ]);
  expect((await get("/v1/users/unknown/entitlements")).json()).toEqual({ user_id: "unknown", entitlements: [] });
});

test("64 parallel requests with one key at two processes: one effect, identical responses", async () => {
  await using t = await setup();
  const processes = [await t.process(), await t.process()];
  const responses = await Promise.all(
    Array.from({ length: 64 }, (_, i) => processes[i % 2]?.post("grants", "one-key")),
  );
  const bytes = responses.map(
    (response) =>
      `${response?.statusCode} ${response?.headers["content-type"]} ${response?.rawPayload.toString("hex")}`,
  );
  expect(new Set(bytes).size).toBe(1);
  expect(responses.filter((response) => response?.headers["idempotency-replayed"] !== "true").length).toBe(1);
  expect(await t.rows()).toEqual({ entitlements: 1, events: 1, audit: 1, keys: 1 });
});

test("the same key with another body is a 409 without effect", async () => {
  await using t = await setup();
  const { post } = await t.process();
  await post("grants", "key-1");
  const other = await post("grants", "key-1", { ...body, purchase_id: "p_457" });
  expect([other.statusCode, other.json().code]).toEqual([409, "idempotency-conflict"]);
  const reordered = await post("grants", "key-1", Object.fromEntries(Object.entries(body).reverse()));
  expect(reordered.headers["idempotency-replayed"]).toBe("true"); // the same JSON in another order is the same body
  expect(await t.rows()).toEqual({ entitlements: 1, events: 1, audit: 1, keys: 1 });
});

test("a key is independent per caller and route", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const responses = [
    await post("grants", "key-1"),
    await post("grants", "key-1", body, "game"),
    await post("revokes", "key-1"),
  ];
  expect(responses.map((response) => response.json().version)).toEqual([1, 2, 3]);
});

test.each(["request", "answer"] as const)(
  "a lost %s of the commit is 503, and a retry with the same key has one effect",
  async (lost) => {
    await using t = await setup();
    await using wire = await openWire(t.url);
    const { post } = await t.process(t.open({ url: wire.url }));
    await post("grants", "warm-up", { ...body, user_id: "u_0" });
    wire.cutNext("change entitlements", lost);
    const unknown = await post("grants", "key-1");
    expect([unknown.statusCode, unknown.json().code]).toEqual([503, "outcome-unknown"]);
    expect(unknown.headers["retry-after"]).toBe("1");
    const retried = await post("grants", "key-1");
    expect(retried.json().version).toBe(1);
    expect(retried.headers["idempotency-replayed"]).toBe(lost === "answer" ? "true" : undefined);
    expect(await t.rows()).toEqual({ entitlements: 2, events: 2, audit: 2, keys: 2 });
  },
);

test("concurrent requests for one entitlement are serialised, and none is lost", async () => {
  await using t = await setup();
  const processes = [await t.process(), await t.process()];
  const responses = await Promise.all(
    Array.from({ length: 100 }, (_, i) => processes[i % 2]?.post("grants", `key-${i}`)),
  );
  const versions = responses.map((response) => response?.json().version).sort((a, b) => a - b);
  expect(versions).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  const { rows } = await t.db.query(`select version::int from outbox_events order by position`);
  expect(rows.map((row) => row.version)).toEqual(versions); // the order of the events is the order of the versions
});

test("a failing request in a batch fails alone", async () => {
  await using t = await setup();
  await t.db.query(`alter table entitlements add constraint no_poison check (source <> 'poison')`);
  const { post } = await t.process();
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      post("grants", `key-${i}`, { ...body, user_id: `u_${i}`, reason: i === 7 ? "poison" : "purchase" }),
    ),
  );
  expect(responses.map((response) => response.statusCode).filter((code) => code !== 201)).toEqual([500]);
  expect(await t.rows()).toEqual({ entitlements: 19, events: 19, audit: 19, keys: 19 });
});

test("an expired key can be used again", async () => {
  await using t = await setup();
  const { post } = await t.process();
  await post("grants", "key-1");
  await t.db.query(`update idempotency_keys set expires_at = now() - interval '1 second'`);
  expect((await post("grants", "key-1")).json().version).toBe(2);
  expect(await t.rows()).toEqual({ entitlements: 1, events: 2, audit: 2, keys: 1 });
});

test("the event of a grant fits the contract", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const granted = (await post("grants", "key-1", { ...body, user_id: 'ü"\\' })).json();
  const { rows } = await t.db.query(`select * from outbox_events`);
  expect(rows[0]).toMatchObject({
    event_type: "EntitlementGranted",
    subject: "entitlement.events",
    aggregate_key: 'ü"\\/item1',
    version: 1n,
  });
  const event = decodeEvent("EntitlementGranted", encodeEvent("EntitlementGranted", rows[0].payload));
  expect(event).toMatchObject({
    userId: granted.user_id,
    stockKeepingUnit: "item1",
    source: "purchase",
    sourceId: "p_456",
    version: 1n,
  });
  expect(event.eventId).toBe(rows[0].event_id);
});

test("every version has one audit row with its caller", async () => {
  await using t = await setup();
  const { post } = await t.process();
  await post("grants", "key-1");
  await post("grants", "key-1");
  await post("revokes", "key-1", { ...body, reason: "refund" }, "game");
  const { rows } = await t.db.query(
    `select a.*, a.created_at = e.updated_at as latest from entitlement_audit a join entitlements e using (user_id) order by a.version`,
  );
  const events = await t.db.query(`select event_id from outbox_events order by position`);
  const same = { user_id: "u_123", stock_keeping_unit: "item1", source_id: "p_456" };
  expect(rows).toMatchObject([
    { ...same, version: 1n, action: "GRANT", source: "purchase", caller: "shop", event_id: events.rows[0].event_id },
    {
      ...same,
      version: 2n,
      action: "REVOKE",
      source: "refund",
      caller: "game",
      event_id: events.rows[1].event_id,
      latest: true,
    },
  ]);
});

test("bad input is a 4xx that names the field and writes nothing", async () => {
  await using t = await setup();
  const { post } = await t.process();
  const cases: [string, unknown, number, string][] = [
    ["key-1", { ...body, user_id: "" }, 400, "body.user_id"],
    ["key-1", { ...body, user_id: 7 }, 400, "body.user_id"],
    ["key-1", { ...body, extra: 1 }, 400, "body.extra"],
    ["key-1", { user_id: "u" }, 400, "body.stock_keeping_unit"],
    ["key-1", { ...body, reason: "a\0b" }, 400, "body.reason"],
    ["key-1", '{"user_id":"\\ud800"}', 400, "body.user_id"],
    ["key 1", body, 400, "header.idempotency-key"],
    ["", body, 400, "header.idempotency-key"],
  ];
  for (const [key, payload, status, field] of cases) {
    const response = await post("grants", key, payload);
    expect([response.statusCode, response.headers["content-type"]]).toEqual([
      status,
      "application/problem+json; charset=utf-8",
    ]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
});

test("a caller without an API key is rejected before the body is read", async () => {
  await using t = await setup();
  const { app, post } = await t.process();
  expect((await post("grants", "key-1", body, "stranger")).statusCode).toBe(401);
  const stranger = await app.inject({ method: "POST", url: "/v1/entitlements/grants", payload: { nonsense: true } });
  expect([stranger.statusCode, stranger.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
  expect((await app.inject({ url: "/v1/users/u_123/entitlements" })).statusCode).toBe(401);
  expect(await t.rows()).toEqual({ entitlements: 0, events: 0, audit: 0, keys: 0 });
});
