import { hash } from "node:crypto";
import { formatVerifyingKey, newSigningKey, openSigner, type Role, toVerifyingKey } from "@todoke/http";
import { inlineRefs } from "@todoke/http/testing";
import { memoryBus } from "@todoke/kernel/bus";
import { until } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { configErrors, start } from "./main.ts";
import { auditLedger } from "./store/audit.ts";

const key = newSigningKey("k1");
const signer = openSigner({ issuer: "gateway-bff", key });
const apiKey = (holder: string, scopes: string) => `${holder}=${scopes}=${hash("sha256", `tdk_${holder}`, "hex")}`;

/** The whole service as `todoke` starts it, on one bus for all processes. */
async function setup(roles = "") {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["points"]));
  const bus = memoryBus();
  const env = {
    DATABASE_URL: t.url,
    POINTS_PORT: "0",
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `${apiKey("shop", "points:write+read")},${apiKey("books", "read")},${apiKey("sales", "entitlements:write")}`,
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
  };
  const startOne = async (ownRoles: string) =>
    parts.use(await start({ ...env, POINTS_ROLES: ownRoles }, { openBus: async () => bus }));
  const service = await startOne(roles);
  let keys = 0;
  async function call(
    method: string,
    path: string,
    { token = "tdk_shop", body }: { token?: string; body?: object } = {},
  ) {
    const response = await fetch(`${service.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(method !== "GET" && { "idempotency-key": `key-${keys++}` }),
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: the body of any response.
    const json: any = text.startsWith("{") ? JSON.parse(text) : undefined;
    return { status: response.status, text, json };
  }
  const db = t.open({ schema: "points" });
  return {
    db,
    service,
    startOne,
    call,
    reserve: (user_id: string) =>
      call("POST", "/point/reserve", {
        body: { user_id, point_amount: 100, execute_at: "2026-01-15T10:00:00+09:00" },
      }),
    show: async (id: string) => (await call("GET", `/v1/points/reservations/${id}`)).json,
    tokenOf: (userId: string, ...roles: Role[]) => signer.tokenFor("points", { userId, roles: ["USER", ...roles] }),
    metrics: async () => (await fetch(`${service.opsUrl}/metrics`)).text(),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

test("the service grants a reservation, emits its events and counts every step", async () => {
  await using t = await setup();
  const { id } = (await t.reserve("u_1")).json;
  await until("it is granted", async () => (await t.show(id)).status === "DONE");
  expect((await t.call("GET", "/point/confirm?user_id=u_1")).json).toMatchObject({ balance: 100, pending: 0 });
  await t.call("PUT", "/point/sub", { body: { user_id: "u_1", point_amount: 30 } });
  const tooMuch = await t.call("PUT", "/point/sub", { body: { user_id: "u_1", point_amount: 71 } });
  expect([tooMuch.status, tooMuch.json.code]).toEqual([409, "insufficient-points"]);
  const published = async () =>
    (await t.db.query(`select event_type from outbox_events where status = 'PUBLISHED' order by position`)).rows;
  await until("all are published", async () => (await published()).length === 3);
  expect((await published()).map((row) => row.event_type)).toEqual([
    "PointReservationDue",
    "PointsGranted",
    "PointsSpent",
  ]);
  // Counted after the commit, so it may show a moment later.
  const counted = [
    /^points_reservation_total\{action="reserve",result="applied"\} [1-9]/m,
    /^points_change_total\{kind="SUB",result="applied"\} [1-9]/m,
    /^points_change_total\{kind="SUB",result="conflict"\} [1-9]/m,
    /^points_reservation_delay_seconds_count [1-9]/m,
    /^points_reservation_backlog\{status="due"\} \d/m,
    /^points_outbox_backlog\{status="pending"\} \d/m,
  ];
  await until("all are counted", async () => {
    const metrics = await t.metrics();
    return counted.every((line) => line.test(metrics));
  });
  const file = await t.call("GET", "/v1/points/users/u_1/statement.csv");
  const kinds = file.text.split("\r\n").map((row) => row.split(",")[2]);
  expect(kinds).toEqual(["kind", "SUB", "GRANT", undefined]);
  expect(await auditLedger(t.db)).toEqual([]);
});

test("each role can run alone: a reservation advances as roles are started", async () => {
  await using t = await setup("api");
  const { id } = (await t.reserve("u_1")).json;
  expect((await t.show(id)).status).toBe("PENDING");
  const scheduler = await t.startOne("scheduler");
  await until("it is dispatched", async () => (await t.show(id)).status === "PROCESSING");
  expect((await fetch(`${scheduler.url}/point/confirm?user_id=u_1`)).status).toBe(404);
  // A process whose event loop is late is not ready for a moment.
  await until("it is ready", async () => (await fetch(`${scheduler.url}/readyz`)).status === 200);
  await t.startOne("worker");
  await t.startOne("relay");
  await until("it is granted", async () => (await t.show(id)).status === "DONE");
});

test("the service grants a schedule's occurrence and posts expired points", async () => {
  await using t = await setup();
  const body = { name: "minutely", cron: "* * * * *", time_zone: "UTC", point_amount: 7, catch_up: "latest" };
  const { schedule_id } = (await t.call("POST", "/v1/points/schedules", { body })).json;
  await t.call("PUT", `/v1/points/schedules/${schedule_id}/users`, { body: { user_ids: ["u_1"] } });
  // Resuming wakes the scheduler.
  await t.db.query(`update point_schedules set next_run_at = date_trunc('minute', now())`);
  await t.call("POST", `/v1/points/schedules/${schedule_id}/resume`);
  const granted = async () => (await t.call("GET", "/v1/points/users/u_1/statement?kind=GRANT")).json.transactions;
  await until("it is granted", async () => (await granted()).length > 0);
  await t.call("PUT", "/point/add", { body: { user_id: "u_2", point_amount: 5, expires_at: "2999-01-01T00:00:00Z" } });
  await t.db.query(`update point_lots set expires_at = now() where user_id = 'u_2'`);
  const expired = async () => (await t.call("GET", "/v1/points/users/u_2/statement?kind=EXPIRE")).json.transactions;
  await until("it is posted", async () => (await expired()).length === 1);
  expect(await expired()).toMatchObject([{ point_amount: -5, balance: 0, to_account: "expired" }]);
});

test("writes need points:write or an admin; a user reads only their own data", async () => {
  await using t = await setup("api");
  const body = { user_id: "u_1", point_amount: 1 };
  const statuses = async (method: string, path: string, sent?: object) => {
    const [player, admin] = [await t.tokenOf("u_1"), await t.tokenOf("u_9", "ADMIN")];
    const callers = ["tdk_shop", "tdk_books", "tdk_sales", admin, player, "tdk_unknown"];
    const calls = callers.map((token) => t.call(method, path, { token, ...(sent && { body: sent }) }));
    return (await Promise.all(calls)).map(({ status }) => status);
  };
  expect(await statuses("PUT", "/point/add", body)).toEqual([200, 403, 403, 200, 403, 401]);
  const execute_at = "2999-01-15T10:00:00+09:00";
  expect(await statuses("POST", "/point/reserve", { ...body, execute_at })).toEqual([201, 403, 403, 201, 403, 401]);
  expect(await statuses("GET", "/point/confirm?user_id=u_1")).toEqual([200, 200, 403, 200, 403, 401]);
  expect(await statuses("GET", "/v1/points/schedules")).toEqual([200, 200, 403, 200, 403, 401]);
  const own = ["balance", "statement", "statement.csv", "expiring", "reservations"].map(
    (of) => `/v1/points/users/u_1/${of}`,
  );
  for (const path of [...own, "/users/u_1/reserved-points"]) {
    expect([path, await statuses("GET", path)]).toEqual([path, [200, 200, 403, 200, 200, 401]]);
    const others = await t.call("GET", path.replace("u_1", "u_2"), { token: await t.tokenOf("u_1") });
    expect([path, others.status]).toEqual([path, 403]);
  }
});

test("the OpenAPI document has operation IDs, summaries, int64 amounts and problem responses", async () => {
  await using t = await setup("api");
  const json = inlineRefs((await t.call("GET", "/openapi.json")).json);
  const operations = Object.entries(
    json.paths as Record<string, Record<string, { operationId: string; summary: string }>>,
  )
    .filter(([path]) => path.includes("point"))
    .flatMap(([, methods]) => Object.values(methods));
  expect(operations.length).toBe(33);
  for (const { operationId, summary } of operations)
    expect([operationId, summary]).toEqual([expect.any(String), expect.any(String)]);
  const { requestBody, responses } = json.paths["/point/add"].put;
  const amounts = [requestBody, responses["200"]].map((part) => part.content["application/json"].schema.properties);
  for (const { point_amount } of amounts)
    expect(point_amount).toMatchObject({ format: "int64", description: expect.any(String) });
  expect(responses["409"].content).toHaveProperty(["application/problem+json"]);
});

test("invalid settings are reported before anything starts", () => {
  const env = { DATABASE_URL: "postgres://localhost/x" };
  expect(configErrors(env)).toEqual([]);
  expect(configErrors({ ...env, POINTS_ROLES: "api,sender", POINTS_SCHEDULER_SECONDS: "0" })).toEqual([
    "POINTS_ROLES should name one or more of api, maintenance, relay, scheduler, worker, with commas between them",
    'POINTS_SCHEDULER_SECONDS is "0" and should be a whole number from 1 to 3600',
  ]);
});
