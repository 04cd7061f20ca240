/**
 * Sends secrets in every place that can hold one, through successes and failures, then searches logs, traces, metrics, tables and
 * responses for them (reference 5.13).
 */
import { randomUUID } from "node:crypto";
import { openBrowser } from "@todoke/identity/testing";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HttpResponse, type RequestOptions, send, sendBytes } from "./http-client.ts";
import { canary, serviceNames, startServing } from "./serve-all.ts";

let served: Awaited<ReturnType<typeof startServing>>;
beforeAll(async () => {
  served = await startServing({
    GATEWAY_BFF_LIMIT_LOGIN: "600/60s",
    GATEWAY_BFF_NATIVE_REDIRECTS: "com.example.game:",
  });
});
afterAll(() => served[Symbol.asyncDispose]());

/** Bodies and headers of every response, without Set-Cookie. */
const responses: string[] = [];

async function sendRecorded(url: string, options: RequestOptions = {}): Promise<HttpResponse> {
  const response = await send(url, options);
  responses.push(JSON.stringify([...response.headers].filter(([name]) => name !== "set-cookie")), response.text);
  return response;
}

interface LoginResult {
  readonly token: string;
  /** Code and state from the provider's redirect. */
  readonly passed: readonly string[];
}

/** Logs in through the provider's form. */
async function logIn(username: string): Promise<LoginResult> {
  const browser = openBrowser();
  const form = await browser.visit((await browser.visit(`${served.origin}/login`)).url);
  const [, action = ""] = /<form[^>]* action="([^"]+)"/.exec(form.text) ?? [];
  const back = await browser.visit(new URL(action.replaceAll("&amp;", "&"), form.url), {
    username,
    password: served.password,
  });
  const landed = await browser.visit(back.url);
  const token = /todoke=(tds_[\w-]{43})/.exec(landed.headers.getSetCookie().join())?.[1];
  if (!token) throw new Error(`${username} was not logged in: ${landed.status} ${landed.text}`);
  return { token, passed: ["code", "state"].map((name) => back.url.searchParams.get(name) ?? "") };
}

/** Sends requests that are rejected, with a secret in every header, query and body. */
async function sendRejected(secrets: Record<string, string>): Promise<void> {
  const { bearer = "", cookie = "", key = "", query = "", body = "", agent = "" } = secrets;
  for (const name of serviceNames)
    for (const path of [
      "/nothing",
      "/livez",
      "/v1/me",
      `/users/${randomUUID()}`,
      "/v1/entitlements/grants",
      "/login/token",
      `/do/order/${key}`,
    ])
      for (const headers of [
        { authorization: `Bearer ${bearer}` },
        { cookie: `todoke=${cookie}` },
        { authorization: `Basic ${bearer}` },
      ])
        for (const method of ["GET", "POST"])
          await sendRecorded(`${served.serviceUrl(name)}${path}?code=${query}`, {
            method,
            headers: {
              ...headers,
              "idempotency-key": key,
              "user-agent": agent,
              traceparent: agent,
              referer: `http://x/?${query}`,
            },
            ...(method === "POST" && { body: { user_id: body, [body]: body } }),
          });
}

/** Causes server errors while requests carry secrets. */
async function causeFailures(player: string): Promise<void> {
  const withoutTable = async (table: string, work: () => Promise<unknown>) => {
    await served.db.query(`alter table ${table} rename to hidden`);
    await work();
    await served.db.query(`alter table ${table.split(".")[0]}.hidden rename to ${table.split(".")[1]}`);
  };
  const me = () => sendRecorded(`${served.serviceUrl("gateway-bff")}/v1/me`, { bearer: player });
  const grant = () =>
    sendRecorded(`${served.serviceUrl("entitlement")}/v1/entitlements/grants`, {
      method: "POST",
      bearer: served.apiKey,
      headers: { "idempotency-key": randomUUID() },
      body: { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" },
    });
  const order = () =>
    sendRecorded(`${served.serviceUrl("orders")}/do/order`, {
      method: "POST",
      bearer: served.apiKey,
      headers: { "idempotency-key": "k-1" },
      body: { ...sampleOrder, idempotency_key: "k-1" },
    });
  await withoutTable("account.users", async () => expect((await me()).status).toBeGreaterThanOrEqual(500));
  await withoutTable("gateway_bff.sessions", async () => expect((await me()).status).toBe(500));
  await withoutTable("entitlement.entitlements", async () => expect((await grant()).status).toBe(500));
  await withoutTable("orders.idempo_ledger", async () => expect((await order()).status).toBe(500));
  expect((await me()).status).toBe(200);
  expect((await grant()).status).toBe(201);
  expect((await order()).status).toBe(201);
  await until("the sender has called the broker", () => served.logged().includes("BROKER_DOWN"));
}

const sampleOrder = {
  order_id: "o-1",
  instrument: "BTC-USD",
  side: "BUY",
  qty: "0.5",
  price: "60000",
  requested_at: "2026-01-31T09:30:00Z",
};

/** A login that the provider rejects, because the code is invalid. */
async function rejectedLogin(code: string): Promise<void> {
  const begun = await send(`${served.origin}/login`);
  const cookie = begun.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const asked = new URL(begun.headers.get("location") ?? "").searchParams;
  const passed = new URLSearchParams({ code, state: asked.get("state") ?? "", iss: served.env.OIDC_ISSUER ?? "" });
  const refused = await sendRecorded(`${served.origin}/login/callback?${passed}`, { headers: { cookie } });
  expect(refused.status).toBeGreaterThanOrEqual(400);
}

// Line breaks, terminal escapes, bidirectional text and a line that looks like a log entry.
const injection = '\r\n\u001b[31m\u007f\u009b31m\u2028\u2029\u202e{"level":60,"msg":"forged"}';
const storableInjection = "\u009b31m\u2028\u2029\u202eforged";

/** Sends the injection in every field that is logged. */
async function sendLogInjections(): Promise<void> {
  for (const name of serviceNames) {
    const url = served.serviceUrl(name);
    await send(`${url}/${encodeURIComponent(injection)}?${encodeURIComponent(injection)}`);
    await send(`${url}/v1/users/${encodeURIComponent(injection)}/inbox`, { bearer: served.apiKey });
    const raw = Buffer.from(storableInjection).toString("latin1");
    for (const header of ["X-Request-Id", "User-Agent", "Idempotency-Key", "Traceparent", "Authorization", "Host"])
      await sendBytes(
        url,
        `GET /nothing HTTP/1.1\r\nConnection: close\r\n${header === "Host" ? "" : "Host: x\r\n"}${header}: ${raw}\r\n\r\n`,
      );
    await sendBytes(url, `${raw} / HTTP/1.1\r\nHost: x\r\n\r\n`);
    await send(`${url}/nothing`, { method: "POST", body: { [injection]: injection } });
  }
  // A user ID that a back-end chose appears in the log of the notification service.
  const granted = await send(`${served.serviceUrl("entitlement")}/v1/entitlements/grants`, {
    method: "POST",
    bearer: served.apiKey,
    headers: { "idempotency-key": randomUUID() },
    body: {
      user_id: storableInjection,
      stock_keeping_unit: storableInjection,
      reason: storableInjection,
      purchase_id: storableInjection,
    },
  });
  expect(granted.status).toBe(201);
  await until("the notification was sent", () => served.logged().includes("notification sent"));
}

test("callers cannot inject lines into the log", async () => {
  await sendLogInjections();
  const lines = served.logged().split("\n").filter(Boolean);
  expect(lines.length).toBeGreaterThan(50);
  for (const line of lines) {
    expect(JSON.parse(line).msg).not.toBe("forged");
    // Control characters, line separators and bidirectional overrides.
    expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
  }
});

/** Every row of every table. */
async function dumpTables(): Promise<string> {
  const { rows } = await served.db.query(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const texts = rows.map(async ({ name }) => {
    const kept = await served.db.query(`select string_agg(t::text, E'\\n') as text from ${name} t`);
    return `${name}: ${kept.rows[0].text}`;
  });
  return (await Promise.all(texts)).join("\n");
}

/** Logins, rejections, failures, an admin action, and the loss of the database. */
async function runScenario(planted: Record<string, string>) {
  const [player, admin] = [await logIn("alice"), await logIn("admin")];
  await sendRejected({ ...planted, bearer: `tds_${planted.bearer}` });
  await sendRejected({ ...planted, cookie: player.token, bearer: served.apiKey });
  await rejectedLogin(planted.code ?? "");
  await causeFailures(player.token);
  const me = JSON.parse((await send(`${served.origin}/v1/me`, { bearer: player.token })).text);
  await sendRecorded(`${served.origin}/v1/admin/users/${me.user_id}:suspend`, {
    method: "POST",
    bearer: admin.token,
    headers: { "idempotency-key": planted.key ?? "" },
    body: { reason: "a test" },
  });
  expect((await sendRecorded(`${served.origin}/v1/me`, { bearer: player.token })).status).toBe(401);
  await until("traces have been sent", () => served.collected.some((sent) => sent.includes("/v1/me")));
  const metrics = await Promise.all(
    serviceNames.map(async (name) => (await send(`${served.opsUrl(name)}/metrics`)).text),
  );
  const database = await dumpTables();
  await served.role.disconnect();
  for (const name of serviceNames) await sendRecorded(`${served.serviceUrl(name)}/readyz`);
  await sendRecorded(`${served.origin}/v1/me`, { bearer: player.token });
  await served.stop();
  return {
    issued: [player, admin].flatMap(({ token, passed }) => [token, ...passed]),
    places: { log: served.output(), traces: served.collected.join("\n"), metrics: metrics.join("\n"), database },
  };
}

test("no secret appears in logs, traces, metrics, tables or responses", async () => {
  const planted = Object.fromEntries(
    ["bearer", "cookie", "key", "query", "body", "agent", "code"].map((name) => [name, canary(name)]),
  );
  const { issued, places } = await runScenario(planted);
  const { env, password, apiKey, role } = served;
  const secrets: Record<string, string> = {
    ...planted,
    ...Object.fromEntries(issued.map((secret, n) => [`session, code or state ${n}`, secret])),
    "password of a player": password,
    "password of the database": role.password,
    "API key": apiKey,
    "client secret": env.OIDC_CLIENT_SECRET ?? "",
    "secret of sessions": env.GATEWAY_BFF_SECRET ?? "",
    "secret of ticket ids": env.MATCHMAKING_TICKET_SECRET ?? "",
    "secret of the broker": env.ORDERS_BROKER_SECRET ?? "",
    "signing key": env.GATEWAY_BFF_TOKEN_KEY?.split("=")[1] ?? "",
  };
  // The places have content, so that the search means something.
  expect(places.log.split("\n").length).toBeGreaterThan(100);
  for (const text of [places.traces, places.metrics]) expect(text).toContain("/v1/me");
  expect(places.database).toContain("gateway_bff.sessions: (");

  const allPlaces = { ...places, responses: responses.join("\n") };
  // The key of a command is stored by design; an error may quote a part of the caller's own input.
  const allowed = { database: ["key"], responses: ["body", "query"] } as Record<string, string[]>;
  for (const [place, text] of Object.entries(allPlaces)) {
    const found = Object.entries(secrets).filter(([, secret]) => text.includes(secret));
    expect([place, found.map(([what]) => what).filter((what) => !allowed[place]?.includes(what))]).toEqual([place, []]);
    // No signed token either.
    expect([place, text.match(/eyJ[\w-]{8,}\.[\w-]+\./)]).toEqual([place, null]);
  }
  expect(Math.min(...Object.values(secrets).map((secret) => secret.length))).toBeGreaterThanOrEqual(16);
  // Responses do not reveal internals.
  expect(allPlaces.responses).not.toMatch(/relation|constraint|select |insert |node_modules|\.ts:\d|pg_|ECONNREFUSED/);
});
