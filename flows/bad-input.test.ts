/** Whatever is wrong with a request, on whichever route: a 4xx that names the field, and not a row of it anywhere. */
import { hash } from "node:crypto";
import { openPostgresBus } from "@todoke/bus-postgres";
import * as entitlement from "@todoke/entitlement";
import { until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { badRequests } from "./bad-requests.ts";
import { goodRequest, type OpenApi, routesOf, type Wish } from "./good-requests.ts";

const holders = ["shop", "game"];

const settings = {
  TODOKE_DEV: "true", // The operator's routes are on the services' own ports, and in their documents.
  TODOKE_API_KEYS: holders
    .map((holder) => `${holder}=entitlements:write+read=${hash("sha256", `tdk_${holder}`, "hex")}`)
    .join(","),
  LOG_LEVEL: "silent",
  ENTITLEMENT_PORT: "0",
  NOTIFICATION_PORT: "0",
};

async function openBoth() {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["entitlement", "notification"]));
  const env = { ...settings, DATABASE_URL: t.url };
  const urls: string[] = [];
  for (const service of [entitlement, notification]) {
    urls.push(parts.use(await service.start(env, { openBus: () => openPostgresBus({ url: t.url }) })).url);
  }
  const subscriptions = () => t.db.query(`select from todoke_bus.bus_subscriptions`);
  await until("the notification service listens", async () => ((await subscriptions()).rowCount ?? 0) > 0);
  const routes = (await Promise.all(urls.map(routesAt))).flat();
  const all = parts.move();
  return { db: t.db, urls, routes, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function routesAt(url: string) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  return routesOf(document).map((route) => ({ url, route }));
}

type Both = Awaited<ReturnType<typeof openBoth>>;

async function ask(url: string, { path, ...wish }: Wish) {
  const answer = await fetch(url + path, wish);
  const type = answer.headers.get("content-type");
  const body = await bodyOf(answer);
  return { status: answer.status, type, body, replayed: answer.headers.get("idempotency-replayed") };
}

/** Of a stream, which has no end, that it was begun is all there is to know. */
async function bodyOf(answer: Response): Promise<{ readonly errors?: readonly { readonly field: string }[] }> {
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer.json() as Promise<object>;
  await answer.body?.cancel();
  return {};
}

/** How many rows each table of both services, and of the bus, has. */
async function rowsIn({ db }: Both): Promise<Record<string, number>> {
  const tables = await db.query(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname in ('entitlement', 'notification', 'todoke_bus') order by 1`,
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables.rows)
    counts[name] = Number((await db.query(`select count(*) from ${name}`)).rows[0].count);
  return counts;
}

test("bad input of every kind, on every route of both services, is refused by name and leaves no row", async () => {
  await using both = await openBoth();
  const before = await rowsIn(both);
  const passed: unknown[] = [];
  let asked = 0;
  for (const { url, route } of both.routes)
    for (const { why, field, ...wish } of badRequests(route)) {
      const { status, type, body } = await ask(url, wish);
      const isRefused = status >= 400 && status < 500 && status !== 401 && status !== 404;
      const isNamed = field === undefined || body.errors?.some((error) => error.field === field);
      const isProblem = type?.startsWith("application/problem+json");
      if (!isRefused || !isNamed || !isProblem) passed.push([route.operationId, why, field, status]);
      asked++;
    }
  expect(passed).toEqual([]);
  expect(asked).toBeGreaterThan(300);
  expect(await rowsIn(both)).toEqual(before);

  // Each was bad by the one thing that was spoilt in it: without that the routes take the request, and there are rows.
  for (const { url, route } of both.routes) {
    const { status, body } = await ask(url, goodRequest(route));
    expect([200, 201, 404], `${route.operationId}: ${JSON.stringify(body)}`).toContain(status);
  }
  expect(await rowsIn(both)).not.toEqual(before);
});

test("a key of one caller never shows another caller's answer, on any route", async () => {
  await using both = await openBoth();
  const [url = ""] = both.urls;
  const change = { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" };
  const post = (holder: string, path: string, body: object) =>
    ask(url, {
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
  // A stranger to a key is told nothing of it, not even that it was used for something else.
  const other = { items: [{ action: "grant", idempotency_key: "key-2", ...change }] };
  const another = { items: [{ action: "grant", idempotency_key: "key-2", ...change, user_id: "u_2" }] };
  expect(await post("shop", "batch", other)).toMatchObject({ body: { results: [{ status: 200 }] } });
  expect(await post("game", "batch", another)).toMatchObject({ body: { results: [{ status: 201 }] } });
  expect(await post("shop", "batch", another)).toMatchObject({ body: { results: [{ status: 409 }] } });
});
