/** Rate limits hold for concurrent requests, over two gateways and for any spelling or address header; idle connections end (5.11). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { parseStatus, send, sendBytes, sendRaw } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
// The burst is a third of the quota plus one; the refill takes minutes, so no test sees it.
const burst = { login: 5, read: 11, write: 8 };
beforeAll(async () => {
  all = await startAll({
    gateways: 2,
    settings: {
      GATEWAY_BFF_LIMIT_LOGIN: "12/3600s",
      GATEWAY_BFF_LIMIT_READ: "30/3600s",
      GATEWAY_BFF_LIMIT_WRITE: "21/3600s",
    },
  });
});
afterAll(() => all[Symbol.asyncDispose]());

const session = async (name: string) => all.openSession(await all.createUser(name));
const at = (n: number) => all.gateways[n % 2] ?? "";
const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const count = (statuses: readonly number[], wanted: (status: number) => boolean) => statuses.filter(wanted).length;

test("of 60 requests over two gateways the burst passes, and the rest get 429 with Retry-After", async () => {
  const bearer = await session("burst");
  const responses = await Promise.all(times(60, (n) => send(`${at(n)}/v1/sessions`, { bearer })));
  expect(
    count(
      responses.map(({ status }) => status),
      (status) => status === 200,
    ),
  ).toBe(burst.read);
  for (const { status, code, headers } of responses.filter((response) => response.status !== 200)) {
    expect([status, code]).toEqual([429, "rate-limited"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("ratelimit-policy")).toContain('"read"');
  }
});

test("no path spelling, method or header has a limit of its own", async () => {
  const bearer = await session("speller");
  const ways = ["/v1/sessions", "/v1/%73essions", "/%76%31/sessions", "/v1/sessions?", "/v1/sessions#x"];
  const seen: number[] = [];
  for (const n of times(30, (n) => n)) {
    const headers = { "x-forwarded-for": `203.0.113.${n}`, "user-agent": `agent ${n}`, "x-request-id": `r-${n}` };
    seen.push((await send(at(n) + ways[n % ways.length], { bearer, headers })).status);
  }
  expect(seen.slice(0, burst.read)).toEqual(times(burst.read, () => 200));
  expect(count(seen, (status) => status === 429)).toBe(30 - burst.read);
  expect((await send(`${at(0)}/v1/sessions`, { method: "HEAD", bearer })).status).toBe(429);
  // Methods are case-sensitive.
  const received = await sendRaw(at(0), [
    "get /v1/sessions HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${bearer}`,
  ]);
  expect(parseStatus(received)).toBe(400);
});

test("all sessions of a user share one limit, over all gateways", async () => {
  const user = await all.createUser("many");
  const bearers = await Promise.all(times(8, () => all.openSession(user)));
  const responses = await Promise.all(
    times(40, (n) => send(`${at(n)}/v1/sessions`, { bearer: bearers[n % bearers.length] ?? "" })),
  );
  expect(
    count(
      responses.map(({ status }) => status),
      (status) => status === 200,
    ),
  ).toBe(burst.read);
});

const addressHeaders: Record<string, string>[] = [
  {},
  { "x-forwarded-for": "203.0.113.1" },
  { "X-FORWARDED-FOR": "203.0.113.2, 198.51.100.7" },
  { "x-forwarded-for": Array.from({ length: 50 }, (_, n) => `10.0.0.${n}`).join(", ") },
  { "x-forwarded-for": "2001:db8::1" },
  { "x-forwarded-for": "127.0.0.1" },
  { "x-forwarded-for": "garbage, ' or 1=1" },
  { forwarded: "for=203.0.113.3" },
  { "x-real-ip": "203.0.113.4" },
  { "true-client-ip": "203.0.113.5" },
  { "cf-connecting-ip": "203.0.113.6" },
  { "x-client-ip": "203.0.113.7" },
  { via: "1.1 somewhere" },
];

test("logins are limited per address for any address header; pending logins can finish", async () => {
  const logins: number[] = [];
  for (const [n, headers] of addressHeaders.entries()) logins.push((await send(`${at(n)}/login`, { headers })).status);
  expect(count(logins, (status) => status !== 429)).toBe(burst.login);
  expect(logins.slice(burst.login)).toEqual(logins.slice(burst.login).map(() => 429));

  // Callbacks from the provider have their own limit, so that a flood of new logins blocks no pending one.
  const callbacks = await Promise.all(times(20, (n) => send(`${at(n)}/login/callback?state=unknown`)));
  expect(
    count(
      callbacks.map(({ status }) => status),
      (status) => status === 400,
    ),
  ).toBe(burst.write);
  const guesses = await Promise.all(
    times(5, (n) =>
      send(`${at(n)}/login/token`, { method: "POST", body: { code: "c", code_verifier: "v".repeat(43) } }),
    ),
  );
  expect(
    count(
      guesses.map(({ status }) => status),
      (status) => status === 429,
    ),
  ).toBe(5);
  // Logged-in users are not affected by anonymous callers of the same address.
  expect((await send(`${at(0)}/v1/sessions`, { bearer: await session("bystander") })).status).toBe(200);
});

test("every server bounds the time for headers and states its keep-alive timeout", async () => {
  // Counted by a timer, because the servers run in this process and check for late requests once per second.
  let seconds = 0;
  const clock = setInterval(() => seconds++, 1_000);
  await Promise.all(
    all.running.map(async ({ name, url }) => {
      const received = await sendBytes(url, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Half: ");
      expect([name, parseStatus(received)]).toEqual([name, 408]);
      expect(seconds).toBeLessThan(9); // Headers have five seconds, a whole request ten.
      const kept = await sendRaw(
        url,
        ["GET /livez HTTP/1.1", "Host: localhost", "X-Last: 1"],
        "GET / HTTP/9.9\r\n\r\n",
      );
      expect(kept).toMatch(/keep-alive: timeout=72/i);
    }),
  ).finally(() => clearInterval(clock));
});

test.each([
  ["too many headers", times(2_000, (n) => `X-${n}: ${n}`)],
  ["one oversized header", [`X-Long: ${"a".repeat(17_000)}`]],
])("%s: 431", async (_what, headers) => {
  for (const { url } of all.running)
    expect(parseStatus(await sendRaw(url, ["GET /livez HTTP/1.1", "Host: localhost", ...headers]))).toBe(431);
});
