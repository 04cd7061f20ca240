/** Every invalid request, on every route, gets a 4xx that names the field and writes no row. */
import { hash } from "node:crypto";
import { openPostgresBus } from "@todoke/bus-postgres";
import * as entitlement from "@todoke/entitlement";
import { formatVerifyingKey, toVerifyingKey } from "@todoke/http";
import { until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { rules } from "./access-rules.ts";
import { type ServiceName, signingKey, tokenFor } from "./all-services.ts";
import { badRequests } from "./bad-requests.ts";
import { goodRequest, type HttpRequest, type OpenApi, parseRoutes, type Route } from "./good-requests.ts";

const holders = ["shop", "game"];

const settings = {
  TODOKE_DEV: "true", // Puts the operator's routes on the services' own ports and into their documents.
  TODOKE_API_KEYS: holders
    .map((holder) => `${holder}=entitlements:write+read=${hash("sha256", `tdk_${holder}`, "hex")}`)
    .join(","),
  TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", signingKey)),
  LOG_LEVEL: "silent",
  ENTITLEMENT_PORT: "0",
  NOTIFICATION_PORT: "0",
};

async function openServices() {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["entitlement", "notification"]));
  const env = { ...settings, DATABASE_URL: t.url };
  const urls: Record<string, string> = {};
  for (const [name, service] of Object.entries({ entitlement, notification })) {
    urls[name] = parts.use(await service.start(env, { openBus: () => openPostgresBus({ url: t.url }) })).url;
  }
  const subscriptions = () => t.db.query(`select from todoke_bus.bus_subscriptions`);
  await until("the notification service listens", async () => ((await subscriptions()).rowCount ?? 0) > 0);
  const routes = (await Promise.all(Object.entries(urls).map(routesAt))).flat();
  const all = parts.move();
  return { db: t.db, url: urls.entitlement ?? "", routes, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function routesAt([name, url]: readonly [string, string]) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  return Promise.all(
    parseRoutes(document).map(async (route) => ({ url, route, bearer: await bearerFor(name, route) })),
  );
}

/** A caller whom the route allows; the routes of operators are for every key here. */
async function bearerFor(name: string, { method, template }: Route): Promise<string> {
  const rule = rules[name as ServiceName][`${method} ${template}`];
  if (!rule || rule.key) return "tdk_shop";
  return rule.staff ? tokenFor(name, { userId: "admin", roles: ["USER", "ADMIN"] }) : tokenFor(name);
}

type OpenServices = Awaited<ReturnType<typeof openServices>>;

async function send(url: string, { path, ...request }: HttpRequest, bearer?: string) {
  const headers = { ...request.headers, ...(bearer && { authorization: `Bearer ${bearer}` }) };
  const response = await fetch(url + path, { ...request, headers });
  const type = response.headers.get("content-type");
  const body = await readBody(response);
  return { status: response.status, type, body, replayed: response.headers.get("idempotency-replayed") };
}

/** A stream has no end: its start is enough. */
async function readBody(response: Response): Promise<{ readonly errors?: readonly { readonly field: string }[] }> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response.json() as Promise<object>;
  await response.body?.cancel();
  return {};
}

/** Row counts of every table of the services and the bus. */
async function countRows({ db }: OpenServices): Promise<Record<string, number>> {
  const tables = await db.query(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname in ('entitlement', 'notification', 'todoke_bus')
        and tablename not in ('audits', 'console_samples') -- written at an interval
      order by 1`,
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables.rows)
    counts[name] = Number((await db.query(`select count(*) from ${name}`)).rows[0].count);
  return counts;
}

test("invalid input on any route is rejected with the field's name and writes no row", async () => {
  await using services = await openServices();
  const before = await countRows(services);
  const accepted: unknown[] = [];
  let sentCount = 0;
  for (const { url, route, bearer } of services.routes)
    for (const { reason, field, ...request } of badRequests(route)) {
      const { status, type, body } = await send(url, request, bearer);
      const isRejected = status >= 400 && status < 500 && status !== 401 && status !== 404;
      const isNamed = field === undefined || body.errors?.some((error) => error.field === field);
      const isProblem = type?.startsWith("application/problem+json");
      if (!isRejected || !isNamed || !isProblem) accepted.push([route.operationId, reason, field, status, body]);
      sentCount++;
    }
  expect(accepted).toEqual([]);
  expect(sentCount).toBeGreaterThan(300);
  expect(await countRows(services)).toEqual(before);

  // The same requests without the invalid part are accepted and write rows.
  for (const { url, route, bearer } of services.routes) {
    const { status, body } = await send(url, goodRequest(route), bearer);
    expect([200, 201, 404], `${route.operationId}: ${JSON.stringify(body)}`).toContain(status);
  }
  expect(await countRows(services)).not.toEqual(before);
});

test("a caller's key never returns another caller's response", async () => {
  await using services = await openServices();
  const { url } = services;
  const change = { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" };
  const post = (holder: string, path: string, body: object) =>
    send(url, {
      method: "POST",
      path: `/v1/entitlements/${path}`,
      headers: {
        authorization: `Bearer tdk_${holder}`,
        "content-type": "application/json",
        ...(path !== "batch" && { "idempotency-key": "key-1" }),
      },
      body: JSON.stringify(body),
    });
  const versions: unknown[] = [];
  for (const path of ["grants", "revokes"])
    for (const holder of holders) {
      const first = await post(holder, path, change);
      expect([first.status < 300, first.replayed]).toEqual([true, null]);
      versions.push(first.body);
      expect(await post(holder, path, change)).toEqual({ ...first, replayed: "true" });
    }
  expect(versions).toMatchObject([1, 2, 3, 4].map((version) => ({ version })));
  // Another caller of the same key learns nothing, not even that it was used.
  const other = { items: [{ action: "grant", idempotency_key: "key-2", ...change }] };
  const another = { items: [{ action: "grant", idempotency_key: "key-2", ...change, user_id: "u_2" }] };
  expect(await post("shop", "batch", other)).toMatchObject({ body: { results: [{ status: 200 }] } });
  expect(await post("game", "batch", another)).toMatchObject({ body: { results: [{ status: 201 }] } });
  expect(await post("shop", "batch", another)).toMatchObject({ body: { results: [{ status: 409 }] } });
});
