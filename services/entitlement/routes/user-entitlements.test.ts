import { expect, test } from "vitest";
import { body, setup } from "../testing.ts";

test("a check returns the entitlement, or 404 if there never was one", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  const granted = await post("grants", "key-1");
  const check = await get("/v1/users/u_123/entitlements/item1");
  expect([check.statusCode, check.json()]).toEqual([200, granted.json()]);
  const revoked = await post("revokes", "key-2");
  expect((await get("/v1/users/u_123/entitlements/item1")).json()).toEqual(revoked.json());
  for (const path of ["u_123/entitlements/item2", "u_12/entitlements/item1"]) {
    const never = await get(`/v1/users/${path}`);
    expect([never.statusCode, never.json().code]).toEqual([404, "entitlement-not-found"]);
  }
});

test("a hundred concurrent checks each get their own response", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  const skus = Array.from({ length: 100 }, (_, i) => `item${i}`);
  await Promise.all(
    skus.filter((_, i) => i % 3).map((sku) => post("grants", sku, { ...body, stock_keeping_unit: sku })),
  );
  const responses = await Promise.all(skus.map((sku) => get(`/v1/users/u_123/entitlements/${sku}`)));
  expect(responses.map((response) => response.json().stock_keeping_unit)).toEqual(
    skus.map((sku, i) => (i % 3 ? sku : undefined)),
  );
});

test("pages list every product once, in order, also during concurrent grants", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  const skus = ["a", "b/ä", "c d", "e", "日本"];
  for (const [i, sku] of skus.entries()) await post("grants", `key-${i}`, { ...body, stock_keeping_unit: sku });
  await post("revokes", "e-", { ...body, stock_keeping_unit: "e" });
  const seen: string[] = [];
  let query = "?limit=2";
  for (let pages = 1; ; pages++) {
    const { entitlements, next_cursor, ...rest } = (await get(`/v1/users/u_123/entitlements${query}`)).json();
    expect(rest).toEqual({ user_id: "u_123" });
    seen.push(...entitlements.map((each: { stock_keeping_unit: string }) => each.stock_keeping_unit));
    if (!next_cursor) break;
    await post("grants", `early-${pages}`, { ...body, stock_keeping_unit: `a${pages}` });
    query = `?limit=2&cursor=${next_cursor}`;
  }
  for (const sku of skus) expect(seen.filter((each) => each === sku)).toEqual([sku]);
  const active = (await get("/v1/users/u_123/entitlements?status=REVOKED")).json();
  expect(active.entitlements).toMatchObject([{ stock_keeping_unit: "e", status: "REVOKED" }]);
  expect(active).not.toHaveProperty("next_cursor");
});

test("the history lists every version, newest first, across partitions", async () => {
  await using t = await setup();
  const { post, get } = await t.process();
  for (const version of [1, 2, 3, 4, 5]) await post(version % 2 ? "grants" : "revokes", `key-${version}`);
  await post("grants", "other", { ...body, stock_keeping_unit: "item2" });
  // Moves the latest two to the next month.
  await t.db.query(`update entitlement_audit set created_at = created_at + interval '1 month' where version > 3`);
  const path = "/v1/users/u_123/entitlements/item1/history";
  const first = (await get(`${path}?limit=3`)).json();
  expect(first).toMatchObject({ user_id: "u_123", stock_keeping_unit: "item1" });
  expect(first.history[0]).toEqual({
    version: 5,
    action: "GRANT",
    source: "purchase",
    source_id: "p_456",
    caller: "shop",
    event_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
  const second = (await get(`${path}?limit=3&cursor=${first.next_cursor}`)).json();
  expect([...first.history, ...second.history].map(({ version, action }) => [version, action])).toEqual([
    [5, "GRANT"],
    [4, "REVOKE"],
    [3, "GRANT"],
    [2, "REVOKE"],
    [1, "GRANT"],
  ]);
  expect(second).not.toHaveProperty("next_cursor");
  expect((await get("/v1/users/unknown/entitlements/item1/history")).json().history).toEqual([]);
});

test("the list and the history are index scans without a sort", async () => {
  await using t = await setup();
  const plans = await Promise.all(
    [
      `select version from entitlement_audit where user_id = 'u' and stock_keeping_unit = 's' and version < 9 order by version desc limit 9`,
      `select version from entitlements where user_id = 'u' and stock_keeping_unit > 's' order by stock_keeping_unit limit 9`,
    ].map((text) => t.db.query(`explain ${text}`)),
  );
  for (const { rows } of plans) {
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toMatch(/Index/);
    expect(plan).not.toMatch(/Sort {2}|Seq Scan/);
  }
});

test("an invalid cursor, limit or filter is rejected by name", async () => {
  await using t = await setup();
  const { get } = await t.process();
  const list = "/v1/users/u_123/entitlements";
  const cases = [
    [`${list}?cursor=%21`, "query.cursor"],
    [`${list}?cursor=AA`, "query.cursor"], // NUL
    [`${list}?cursor=_w`, "query.cursor"], // not UTF-8
    [`${list}/item1/history?cursor=${Buffer.from("x").toString("base64url")}`, "query.cursor"],
    [`${list}?limit=0`, "query.limit"],
    [`${list}?limit=1001`, "query.limit"],
    [`${list}?limit=1e2`, "query.limit"],
    [`${list}?status=LOST`, "query.status"],
    [`${list}?sku=item1`, "query.sku"],
  ] as const;
  for (const [url, field] of cases) {
    const response = await get(url);
    expect([url, response.statusCode]).toEqual([url, 400]);
    expect(response.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  }
});
