/**
 * Secrets are planted wherever there are any, all kinds of things go well and wrong, and then all that the process has printed,
 * sent to the collector of traces, counted, kept and answered is searched for them (reference 5.13).
 */
import { randomUUID } from "node:crypto";
import { openBrowser } from "@todoke/identity/testing";
import { until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answered, ask, hear, type Wish } from "./asking.ts";
import { canary, names, startServed } from "./served.ts";

let served: Awaited<ReturnType<typeof startServed>>;
beforeAll(async () => {
  served = await startServed({
    GATEWAY_BFF_LIMIT_LOGIN: "600/60s",
    GATEWAY_BFF_NATIVE_REDIRECTS: "com.example.game:",
  });
});
afterAll(() => served[Symbol.asyncDispose]());

/** Bodies and headers of every answer, but for the cookies, which are whose they are. */
const answers: string[] = [];

async function tell(url: string, wish: Wish = {}): Promise<Answered> {
  const answer = await ask(url, wish);
  answers.push(JSON.stringify([...answer.headers].filter(([name]) => name !== "set-cookie")), answer.text);
  return answer;
}

interface LoggedIn {
  readonly token: string;
  /** What came back from the provider by way of the browser: code and state. */
  readonly passed: readonly string[];
}

/** As a player does it, in a browser, with the password. */
async function logIn(username: string): Promise<LoggedIn> {
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

/** Everything that goes wrong at the door, with a secret wherever one could be written. */
async function refusals(secrets: Record<string, string>): Promise<void> {
  const { bearer = "", cookie = "", key = "", query = "", body = "", agent = "" } = secrets;
  for (const name of names)
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
          await tell(`${served.urlOf(name)}${path}?code=${query}`, {
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

/** Failures of ours, in the middle of what a secret is a part of. */
async function failures(player: string): Promise<void> {
  const away = async (table: string, work: () => Promise<unknown>) => {
    await served.db.query(`alter table ${table} rename to away`);
    await work();
    await served.db.query(`alter table ${table.split(".")[0]}.away rename to ${table.split(".")[1]}`);
  };
  const me = () => tell(`${served.urlOf("gateway-bff")}/v1/me`, { bearer: player });
  const grant = () =>
    tell(`${served.urlOf("entitlement")}/v1/entitlements/grants`, {
      method: "POST",
      bearer: served.apiKey,
      headers: { "idempotency-key": randomUUID() },
      body: { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" },
    });
  const order = () =>
    tell(`${served.urlOf("orders")}/do/order`, {
      method: "POST",
      bearer: served.apiKey,
      headers: { "idempotency-key": "k-1" },
      body: { ...anOrder, idempotency_key: "k-1" },
    });
  await away("account.users", async () => expect((await me()).status).toBeGreaterThanOrEqual(500));
  await away("gateway_bff.sessions", async () => expect((await me()).status).toBe(500));
  await away("entitlement.entitlements", async () => expect((await grant()).status).toBe(500));
  await away("orders.idempo_ledger", async () => expect((await order()).status).toBe(500));
  expect((await me()).status).toBe(200);
  expect((await grant()).status).toBe(201);
  expect((await order()).status).toBe(201);
  await until("the broker was asked to take it", () => served.logged().includes("BROKER_DOWN"));
}

const anOrder = {
  order_id: "o-1",
  instrument: "BTC-USD",
  side: "BUY",
  qty: "0.5",
  price: "60000",
  requested_at: "2026-01-31T09:30:00Z",
};

/** A log-in that the provider refuses, for the code is not its own. */
async function refusedLogIn(code: string): Promise<void> {
  const begun = await ask(`${served.origin}/login`);
  const cookie = begun.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const asked = new URL(begun.headers.get("location") ?? "").searchParams;
  const passed = new URLSearchParams({ code, state: asked.get("state") ?? "", iss: served.env.OIDC_ISSUER ?? "" });
  const refused = await tell(`${served.origin}/login/callback?${passed}`, { headers: { cookie } });
  expect(refused.status).toBeGreaterThanOrEqual(400);
}

// A line of its own, a terminal's command, a line in JavaScript, text turned round, and a line that looks like ours.
const nasty = '\r\n\u001b[31m\u007f\u009b31m\u2028\u2029\u202e{"level":60,"msg":"forged"}';
const nastyButKept = "\u009b31m\u2028\u2029\u202eforged";

/** A caller's text in every field that can come to a line. */
async function writeIntoTheLog(): Promise<void> {
  for (const name of names) {
    const url = served.urlOf(name);
    await ask(`${url}/${encodeURIComponent(nasty)}?${encodeURIComponent(nasty)}`);
    await ask(`${url}/v1/users/${encodeURIComponent(nasty)}/inbox`, { bearer: served.apiKey });
    const raw = Buffer.from(nastyButKept).toString("latin1");
    for (const header of ["X-Request-Id", "User-Agent", "Idempotency-Key", "Traceparent", "Authorization", "Host"])
      await hear(
        url,
        `GET /nothing HTTP/1.1\r\nConnection: close\r\n${header === "Host" ? "" : "Host: x\r\n"}${header}: ${raw}\r\n\r\n`,
      );
    await hear(url, `${raw} / HTTP/1.1\r\nHost: x\r\n\r\n`);
    await ask(`${url}/nothing`, { method: "POST", body: { [nasty]: nasty } });
  }
  // What a back-end may well call a user comes to the lines of whoever tells the user something.
  const granted = await ask(`${served.urlOf("entitlement")}/v1/entitlements/grants`, {
    method: "POST",
    bearer: served.apiKey,
    headers: { "idempotency-key": randomUUID() },
    body: { user_id: nastyButKept, stock_keeping_unit: nastyButKept, reason: nastyButKept, purchase_id: nastyButKept },
  });
  expect(granted.status).toBe(201);
  await until("the user was told", () => served.logged().includes("notification sent"));
}

test("every line of the log is one of ours, whatever callers write", async () => {
  await writeIntoTheLog();
  const lines = served.logged().split("\n").filter(Boolean);
  expect(lines.length).toBeGreaterThan(50);
  for (const line of lines) {
    expect(JSON.parse(line).msg).not.toBe("forged");
    // Control characters, ends of lines, and what turns text round.
    expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
  }
});

/** Every row of every table, dead letters and stored answers among them. */
async function rowsOfEverything(): Promise<string> {
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

/** A day in the life of a site: log-ins, refusals, failures, an admin's act, and the end of the database. */
async function live(planted: Record<string, string>) {
  const [player, admin] = [await logIn("alice"), await logIn("admin")];
  await refusals({ ...planted, bearer: `tds_${planted.bearer}` });
  await refusals({ ...planted, cookie: player.token, bearer: served.apiKey });
  await refusedLogIn(planted.code ?? "");
  await failures(player.token);
  const me = JSON.parse((await ask(`${served.origin}/v1/me`, { bearer: player.token })).text);
  await tell(`${served.origin}/v1/admin/users/${me.user_id}:suspend`, {
    method: "POST",
    bearer: admin.token,
    headers: { "idempotency-key": planted.key ?? "" },
    body: { reason: "a test" },
  });
  expect((await tell(`${served.origin}/v1/me`, { bearer: player.token })).status).toBe(401);
  await until("traces have been sent", () => served.collected.some((sent) => sent.includes("/v1/me")));
  const metrics = await Promise.all(names.map(async (name) => (await ask(`${served.opsUrlOf(name)}/metrics`)).text));
  const database = await rowsOfEverything();
  await served.role.shutOut();
  for (const name of names) await tell(`${served.urlOf(name)}/readyz`);
  await tell(`${served.origin}/v1/me`, { bearer: player.token });
  await served.stop();
  return {
    issued: [player, admin].flatMap(({ token, passed }) => [token, ...passed]),
    places: { log: served.printed(), traces: served.collected.join("\n"), metrics: metrics.join("\n"), database },
  };
}

test("no secret is in any line, trace, metric, row or answer, whatever went well or wrong", async () => {
  const planted = Object.fromEntries(
    ["bearer", "cookie", "key", "query", "body", "agent", "code"].map((name) => [name, canary(name)]),
  );
  const { issued, places } = await live(planted);
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
  // They are full: a search of nothing finds nothing.
  expect(places.log.split("\n").length).toBeGreaterThan(100);
  for (const text of [places.traces, places.metrics]) expect(text).toContain("/v1/me");
  expect(places.database).toContain("gateway_bff.sessions: (");

  const everywhere = { ...places, answers: answers.join("\n") };
  // A command's key is kept under its own name; a refusal may show its caller a glimpse of what they sent.
  const wherever = { database: ["key"], answers: ["body", "query"] } as Record<string, string[]>;
  for (const [place, text] of Object.entries(everywhere)) {
    const found = Object.entries(secrets).filter(([, secret]) => text.includes(secret));
    expect([place, found.map(([what]) => what).filter((what) => !wherever[place]?.includes(what))]).toEqual([
      place,
      [],
    ]);
    // No signed token either, of ours or of the provider's.
    expect([place, text.match(/eyJ[\w-]{8,}\.[\w-]+\./)]).toEqual([place, null]);
  }
  expect(Math.min(...Object.values(secrets).map((secret) => secret.length))).toBeGreaterThanOrEqual(16);
  // Answers tell nothing of what we are made of.
  expect(everywhere.answers).not.toMatch(/relation|constraint|select |insert |node_modules|\.ts:\d|pg_|ECONNREFUSED/);
});
