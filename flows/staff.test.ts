/** Acts of staff through the gateway, in each role: the effect, its record, and the refusals. */
import { randomUUID } from "node:crypto";
import { hashApiKey } from "@todoke/http";
import { fixedId, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll, type User } from "./all-services.ts";

type All = Awaited<ReturnType<typeof startAll>>;
type Names = "player" | "viewer" | "operator" | "admin";

let all: All;
let users: Readonly<Record<Names | "target", User>>;
let tokens: Readonly<Record<Names, string>>;

beforeAll(async () => {
  all = await startAll();
  const names = ["player", "target", "viewer", "operator", "admin"] as const;
  const created = await Promise.all(names.map(async (name) => [name, await all.createUser(name)] as const));
  users = Object.fromEntries(created) as typeof users;
  const opened = await Promise.all(created.map(async ([name, user]) => [name, await all.openSession(user)] as const));
  tokens = Object.fromEntries(opened) as typeof tokens;
});
afterAll(() => all[Symbol.asyncDispose]());

async function call(
  as: Names,
  method: "GET" | "POST" | "PUT",
  path: string,
  body?: object,
  key: string = randomUUID(),
) {
  const response = await fetch(`${all.gateways[0]}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${tokens[as]}`,
      ...(body && { "content-type": "application/json" }),
      ...(method === "POST" && { "idempotency-key": key }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  return { ...answer, http: response.status } as Record<string, unknown>;
}

const count = async (from: string) => Number((await all.db.query(`select count(*) from ${from}`)).rows[0].count);
const services = ["account", "entitlement", "gateway_bff", "matchmaking", "notification", "orders", "points"];
const countActs = async () => {
  const counts = await Promise.all(services.map((schema) => count(`${schema}.staff_acts`)));
  return counts.reduce(
    (sum, each) => sum + each,
    await count("account.audit_logs where action not in ('CREATE', 'UPDATE')"),
  );
};

interface ActCase {
  readonly act: string;
  readonly service: string;
  readonly role: "OPERATOR" | "ADMIN";
  readonly method?: "PUT";
  readonly path: () => string;
  readonly body: () => object | Promise<object>;
  readonly status?: number;
  readonly result: object;
}

const reason = "a player asked";
const ofTarget = (rest: string) => () => `/v1/admin/users/${users.target.userId}${rest}`;

/** Kills an event of entitlement, and returns its id. */
async function killEvent(): Promise<string> {
  const { rows } = await all.db.query(
    `insert into entitlement.outbox_events
       (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     values (gen_random_uuid(), 'EntitlementGranted', 'entitlement.events', gen_random_uuid()::text, 1, '{}', 'FAILED', 10, 'HTTP 410')
     returning event_id`,
  );
  return rows[0].event_id;
}

const newKeyId = randomUUID();

const acts: readonly ActCase[] = [
  {
    act: "grantEntitlementAsStaff",
    service: "entitlement",
    role: "OPERATOR",
    path: ofTarget("/entitlement-grants"),
    body: () => ({ stock_keeping_unit: "item1", reason }),
    status: 201,
    result: { stock_keeping_unit: "item1", status: "ACTIVE", version: 1 },
  },
  {
    act: "revokeEntitlementAsStaff",
    service: "entitlement",
    role: "OPERATOR",
    path: ofTarget("/entitlement-revokes"),
    body: () => ({ stock_keeping_unit: "item1", reason }),
    result: { status: "REVOKED", version: 2 },
  },
  {
    act: "adjustPoints",
    service: "points",
    role: "OPERATOR",
    path: ofTarget("/point-adjustments"),
    body: () => ({ direction: "add", point_amount: 100, reason }),
    result: { kind: "ADD", balance: 100 },
  },
  {
    act: "suspendUser",
    service: "account",
    role: "OPERATOR",
    path: ofTarget(":suspend"),
    body: () => ({ reason }),
    result: { status: "SUSPENDED" },
  },
  {
    act: "reinstateUser",
    service: "account",
    role: "OPERATOR",
    path: ofTarget(":reinstate"),
    body: () => ({ reason }),
    result: { status: "ACTIVE" },
  },
  {
    act: "endUserSessions",
    service: "gateway-bff",
    role: "OPERATOR",
    path: ofTarget("/sessions:end"),
    body: () => ({ reason }),
    result: { ended: 0 },
  },
  {
    act: "setTradingState",
    service: "orders",
    role: "OPERATOR",
    method: "PUT",
    path: () => "/v1/orders/trading-state",
    body: () => ({ mode: "halt", reason }),
    result: { scope: "*", mode: "halt" },
  },
  {
    act: "redriveDeadLetters",
    service: "entitlement",
    role: "OPERATOR",
    path: () => "/v1/admin/services/entitlement/dead-letters/outbox_events:redrive",
    body: async () => ({ ids: [await killEvent()], reason }),
    result: { unchanged: [] },
  },
  {
    act: "discardDeadLetters",
    service: "entitlement",
    role: "OPERATOR",
    path: () => "/v1/admin/services/entitlement/dead-letters/outbox_events:discard",
    body: async () => ({ ids: [await killEvent()], reason }),
    result: { unchanged: [] },
  },
  {
    act: "startDeadLetterBatch",
    service: "gateway-bff",
    role: "OPERATOR",
    path: () => "/v1/admin/services/gateway-bff/dead-letter-batches",
    body: () => ({ act: "redrive", table: "inbox_dlq", all: true, through: "1", reason }),
    status: 201,
    result: { service: "gateway-bff", total: 0 },
  },
  {
    act: "grantRole",
    service: "account",
    role: "ADMIN",
    path: ofTarget(":grant-role"),
    body: () => ({ role: "VIEWER", reason }),
    result: { roles: ["USER", "VIEWER"] },
  },
  {
    act: "revokeRole",
    service: "account",
    role: "ADMIN",
    path: ofTarget(":revoke-role"),
    body: () => ({ role: "VIEWER", reason }),
    result: { roles: ["USER"] },
  },
  {
    act: "createServiceKey",
    service: "points",
    role: "ADMIN",
    path: () => "/v1/admin/keys",
    body: () => ({ ...newKey(newKeyId), services: ["points"] }),
    result: { key_id: newKeyId, services: ["points"], failed: [] },
  },
  {
    act: "revokeServiceKey",
    service: "points",
    role: "ADMIN",
    path: () => `/v1/admin/keys/${newKeyId}:revoke`,
    body: () => ({ reason }),
    result: { key_id: newKeyId, services: ["points"], failed: [] },
  },
];

const newKey = (key_id: string, secret = key_id) => ({
  key_id,
  sha256: hashApiKey(`tdk_${secret}`),
  holder: "shop",
  scopes: ["read", "entitlements:write"],
  expires_at: "2999-01-01T00:00:00Z",
  reason,
});

test.each(acts)("$act is for the role $role and above, takes a reason, and is in the audit log once", async (each) => {
  const { act, service, role, method = "POST", path, status = 200, result } = each;
  const body = await each.body();
  const before = await countActs();
  const refused = role === "ADMIN" ? (["player", "viewer", "operator"] as const) : (["player", "viewer"] as const);
  for (const name of refused)
    expect([name, await call(name, method, path(), body)]).toMatchObject([name, { status: 403, code: "forbidden" }]);
  expect(await call("admin", method, path(), { ...body, reason: "" })).toMatchObject({ status: 400 });
  expect(await countActs()).toBe(before);

  const actor = role === "ADMIN" ? "admin" : "operator";
  const key = randomUUID();
  const send = () => call(actor, method, path(), body, key);
  const answer = await send();
  expect(answer).toMatchObject({ http: status, ...result });
  if (method === "POST") expect(await send()).toEqual(answer);
  expect(await countActs()).toBe(before + 1);
  const log = await call("viewer", "GET", `/v1/admin/audit-log?limit=1&service=${service}`);
  expect(log).toMatchObject({
    http: 200,
    failed: [],
    acts: [{ service, act, actor: `user:${users[actor].userId}`, reason }],
  });
});

test("an operator cannot act on staff, nor on themselves, nor grant a role", async () => {
  const ofAdmin = `/v1/admin/users/${users.admin.userId}`;
  expect(await call("operator", "POST", `${ofAdmin}:suspend`, { reason })).toMatchObject({ status: 403 });
  const ofOperator = `/v1/admin/users/${users.operator.userId}`;
  const toSelf = { direction: "add", point_amount: 100, reason };
  expect(await call("operator", "POST", `${ofOperator}/point-adjustments`, toSelf)).toMatchObject({ status: 403 });
  expect(await call("operator", "POST", `${ofOperator}:grant-role`, { role: "ADMIN", reason })).toMatchObject({
    status: 403,
  });
});

test("a dead event is found by its error, redriven and published, without a terminal", async () => {
  const granted = await call("operator", "POST", ofTarget("/entitlement-grants")(), {
    stock_keeping_unit: "item2",
    reason,
  });
  expect(granted).toMatchObject({ version: 1 });
  const event = "entitlement.outbox_events where payload ->> 'stock_keeping_unit' = 'item2'";
  await until("the event is published", async () => (await count(`${event} and status = 'PUBLISHED'`)) === 1);
  await all.db.query(
    `update entitlement.outbox_events set status = 'FAILED', last_error = 'connection 17 refused', published_at = null
      where payload ->> 'stock_keeping_unit' = 'item2'`,
  );
  const { groups } = (await call("viewer", "GET", "/v1/admin/dead-letters/groups")) as unknown as {
    groups: { service: string; table: string; group: string; error: string }[];
  };
  const [found] = groups.filter(({ error }) => error === "connection # refused");
  expect(found).toMatchObject({ service: "entitlement", table: "outbox_events" });
  const table = `/v1/admin/services/entitlement/dead-letters/outbox_events`;
  const { through } = await call("viewer", "GET", `${table}:preview?group=${found?.group}`);
  const batch = await call("operator", "POST", "/v1/admin/services/entitlement/dead-letter-batches", {
    act: "redrive",
    table: "outbox_events",
    filter: { group: found?.group },
    through,
    reason,
  });
  const progress = () => call("viewer", "GET", `/v1/admin/services/entitlement/dead-letter-batches/${batch.batch_id}`);
  await until("the batch is done", async () => (await progress()).state === "DONE");
  expect(await progress()).toMatchObject({ total: 1, examined: 1, applied: 1 });
  await until("the event is published again", async () => (await count(`${event} and status = 'PUBLISHED'`)) === 1);
});

test("an act is undone once, by its opposite on the same user", async () => {
  const path = ofTarget("/entitlement-grants")();
  await call("operator", "POST", path, { stock_keeping_unit: "item3", reason });
  const { acts: listed } = (await call(
    "viewer",
    "GET",
    "/v1/admin/audit-log?service=entitlement&limit=1",
  )) as unknown as {
    acts: { act_id: string }[];
  };
  const undoes = listed[0]?.act_id;
  const revoke = (user: string, stock_keeping_unit = "item3") =>
    call("operator", "POST", `/v1/admin/users/${user}/entitlement-revokes`, { stock_keeping_unit, reason, undoes });
  expect(await revoke(users.admin.userId)).toMatchObject({ status: 404, code: "act-not-found" });
  expect(await revoke(users.target.userId, "item1")).toMatchObject({ status: 404, code: "act-not-found" });
  expect(await revoke(users.target.userId)).toMatchObject({ status: "REVOKED" });
  expect(await revoke(users.target.userId)).toMatchObject({ status: 409, code: "act-already-undone" });
  // The refused ones changed nothing.
  expect(await count("entitlement.entitlements where stock_keeping_unit = 'item3' and version = 2")).toBe(1);
  expect(await count("entitlement.entitlements where stock_keeping_unit = 'item3'")).toBe(1);
  const [newest, oldest] = (
    (await call("viewer", "GET", "/v1/admin/audit-log?service=entitlement&limit=2")) as unknown as { acts: object[] }
  ).acts;
  expect(newest).toMatchObject({ act: "revokeEntitlementAsStaff", undoes });
  expect(oldest).toMatchObject({ act_id: undoes, undone_by: expect.any(String) });
});

test("the audit log of all services comes in pages, each act once", async () => {
  const ids: string[] = [];
  for (let cursor: unknown = ""; cursor !== undefined; ) {
    const page = await call("viewer", "GET", `/v1/admin/audit-log?limit=3${cursor ? `&cursor=${cursor}` : ""}`);
    const listed = page.acts as { service: string; act_id: string }[];
    ids.push(...listed.map(({ service, act_id }) => `${service} ${act_id}`));
    cursor = page.next_cursor;
  }
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBe(await countActs());
  expect(await call("viewer", "GET", "/v1/admin/audit-log?cursor=nonsense")).toMatchObject({ status: 400 });
});

test("staff reads a user's page: profile, products, points, inbox, tickets, orders, sessions", async () => {
  const { userId } = users.target;
  for (const path of [
    `/v1/users/${userId}`,
    `/v1/users/${userId}/entitlements`,
    `/v1/users/${userId}/entitlements/item1/history`,
    `/v1/points/users/${userId}/balance`,
    `/v1/points/users/${userId}/statement`,
    `/v1/points/users/${userId}/expiring`,
    `/v1/points/users/${userId}/reservations`,
    `/v1/admin/users/${userId}/notifications`,
    `/v1/admin/users/${userId}/tickets`,
    `/v1/admin/users/${userId}/sessions`,
    `/v1/orders?user_id=${userId}`,
    "/v1/orders/unresolved",
    "/v1/orders/trading-state",
    "/v1/admin/orders/reconciliations",
    "/v1/admin/points/late-reservations",
    "/v1/admin/points/upcoming-reservations",
    "/v1/admin/matchmaking/rules",
    "/v1/admin/matchmaking/queues/ranked/simulation?players=10",
    "/v1/admin/services/points/last-audit",
    "/v1/admin/services/gateway-bff/last-audit",
    "/v1/points/schedules",
    "/v1/admin/users?name=pla",
  ])
    expect([path, (await call("viewer", "GET", path)).http]).toEqual([path, 200]);
});

test("the overview has every service and what needs a person; API keys are for admins", async () => {
  await killEvent();
  const overview = (await call("viewer", "GET", "/v1/admin/overview")) as unknown as {
    services: { service: string; ready: boolean }[];
    needs_you: object[];
    failed: object[];
  };
  expect(overview.services.map(({ service }) => service.replaceAll("-", "_")).sort()).toEqual(services);
  expect(overview.services.every(({ ready }) => ready)).toBe(true);
  expect(overview.failed).toEqual([]);
  expect(overview.needs_you).toContainEqual(
    expect.objectContaining({ service: "entitlement", kind: "dead", table: "outbox_events" }),
  );
  for (const schema of ["entitlement", "gateway_bff"])
    await all.db.query(
      `insert into ${schema}.api_keys (key_id, holder, scopes, sha256, created_by)
       values ($1, 'shop', '{read}', sha256('secret'), 'aki')`,
      [fixedId(7)],
    );
  expect(await call("operator", "GET", "/v1/admin/keys")).toMatchObject({ status: 403 });
  expect(await call("admin", "GET", "/v1/admin/keys")).toMatchObject({
    keys: [{ key_id: fixedId(7), holder: "shop", state: "live", services: ["entitlement", "gateway-bff"] }],
    failed: [],
  });
});

test("a key that an admin creates works at its services, and nowhere after it is revoked", async () => {
  const id = randomUUID();
  const body = { ...newKey(id), services: ["entitlement", "points"] };
  const read = (service: "entitlement" | "points" | "matchmaking", path: string) =>
    fetch(`${all.running.find(({ name }) => name === service)?.url}${path}`, {
      headers: { authorization: `Bearer tdk_${id}` },
    });
  const statuses = async () => [
    (await read("entitlement", `/v1/users/${users.target.userId}/entitlements`)).status,
    (await read("points", `/v1/points/users/${users.target.userId}/balance`)).status,
    (await read("matchmaking", "/v1/matchmaking/queues")).status,
  ];
  // A service that has seen the key before it exists knows it as unknown.
  expect(await statuses()).toEqual([401, 401, 401]);
  const key = randomUUID();
  const created = await call("admin", "POST", "/v1/admin/keys", body, key);
  expect(created).toMatchObject({ http: 200, services: ["entitlement", "points"], failed: [] });
  // Its answer was lost: the same request again creates nothing new.
  expect(await call("admin", "POST", "/v1/admin/keys", body, key)).toEqual(created);
  expect(await count(`points.api_keys where key_id = '${id}' and sha256 = '\\x${body.sha256}'`)).toBe(1);
  await until("the key works", async () => (await statuses()).join() === "200,200,401");
  expect(await call("admin", "POST", "/v1/admin/keys", { ...body, services: ["nothing"] })).toMatchObject({
    status: 400,
  });
  const create = (more: object) => call("admin", "POST", "/v1/admin/keys", { ...body, ...more });
  expect(await create({ expires_at: "2020-01-01T00:00:00Z" })).toMatchObject({ http: 400 });
  // Of the hash or the ID of another key there is no second one; a service that does not have it accepts it.
  const conflict = { http: 409, code: "api-key-conflict" };
  expect(await create({ key_id: randomUUID(), services: ["points"] })).toMatchObject(conflict);
  expect(await create({ scopes: ["read"] })).toMatchObject(conflict);
  expect(await create({ scopes: ["read"], services: ["points", "matchmaking"] })).toMatchObject({
    http: 200,
    services: ["matchmaking"],
    failed: [{ service: "points", detail: expect.any(String) }],
  });

  const revoke = await call("admin", "POST", `/v1/admin/keys/${id}:revoke`, { reason });
  expect(revoke).toMatchObject({ http: 200, services: ["entitlement", "matchmaking", "points"], failed: [] });
  await until("the key is refused", async () => (await statuses()).join() === "401,401,401");
  // A revoked key does not come back.
  expect(await create({ services: ["points"] })).toMatchObject(conflict);
  const { rows } = await all.db.query("select details::text as details from points.staff_acts where target = $1", [id]);
  expect(rows).toHaveLength(2);
  expect(JSON.stringify(rows)).not.toContain(body.sha256);
});

test("an operator ends the sessions of players, and only an admin those of staff", async () => {
  const path = `/v1/admin/users/${users.viewer.userId}/sessions:end`;
  expect(await call("operator", "POST", path, { reason })).toMatchObject({ status: 403, code: "forbidden" });
  expect(await call("viewer", "GET", "/v1/admin/audit-log")).toMatchObject({ http: 200 });
  const absent = { session_id: fixedId(1), reason };
  expect(await call("admin", "POST", path, absent)).toMatchObject({ status: 404, code: "session-not-found" });
});

test("a change by staff needs a fresh login", async () => {
  await all.db.query(
    "update gateway_bff.sessions set authenticated_at = now() - interval '1 hour' where user_id = $1",
    [users.operator.userId],
  );
  for (const [path, body] of [
    [ofTarget("/entitlement-grants")(), { stock_keeping_unit: "item9", reason }],
    [
      "/v1/admin/services/gateway-bff/dead-letter-batches",
      { act: "redrive", table: "inbox_dlq", all: true, through: "1", reason },
    ],
    [ofTarget("/sessions:end")(), { reason }],
  ] as const)
    expect(await call("operator", "POST", path, body)).toMatchObject({
      status: 403,
      code: "reauthentication-required",
    });
  expect(await call("operator", "GET", "/v1/admin/audit-log")).toMatchObject({ http: 200 });
});
