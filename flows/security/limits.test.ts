/**
 * Nobody gets more than their share: by many requests at once, over two gateways, by another spelling, or by another name for
 * where they come from; and nobody holds a connection by saying nothing (reference 5.11).
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll } from "../all-services.ts";
import { ask, askRaw, hear, statusOf } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
// A third of the quota and one more can be had at once; the next only after minutes, so that no test here meets it.
const atOnce = { login: 5, read: 11, write: 8 };
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

const session = async (name: string) => all.openSession(await all.makeUser(name));
const at = (n: number) => all.gateways[n % 2] ?? "";
const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const countOf = (statuses: readonly number[], wanted: (status: number) => boolean) => statuses.filter(wanted).length;

test("sixty at once, over two gateways: as many get through as may, and the others hear when to come back", async () => {
  const bearer = await session("burst");
  const answers = await Promise.all(times(60, (n) => ask(`${at(n)}/v1/sessions`, { bearer })));
  expect(
    countOf(
      answers.map(({ status }) => status),
      (status) => status === 200,
    ),
  ).toBe(atOnce.read);
  for (const { status, code, headers } of answers.filter((answer) => answer.status !== 200)) {
    expect([status, code]).toEqual([429, "rate-limited"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("ratelimit-policy")).toContain('"read"');
  }
});

test("no spelling of a path, no method and no header has a share of its own", async () => {
  const bearer = await session("speller");
  const ways = ["/v1/sessions", "/v1/%73essions", "/%76%31/sessions", "/v1/sessions?", "/v1/sessions#x"];
  const seen: number[] = [];
  for (const n of times(30, (n) => n)) {
    const headers = { "x-forwarded-for": `203.0.113.${n}`, "user-agent": `agent ${n}`, "x-request-id": `r-${n}` };
    seen.push((await ask(at(n) + ways[n % ways.length], { bearer, headers })).status);
  }
  expect(seen.slice(0, atOnce.read)).toEqual(times(atOnce.read, () => 200));
  expect(countOf(seen, (status) => status === 429)).toBe(30 - atOnce.read);
  expect((await ask(`${at(0)}/v1/sessions`, { method: "HEAD", bearer })).status).toBe(429);
  // Methods are written in capitals: anything else is none.
  const heard = await askRaw(at(0), [
    "get /v1/sessions HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${bearer}`,
  ]);
  expect(statusOf(heard)).toBe(400);
});

test("one account from many sessions, and many sessions at many gateways, have one share", async () => {
  const user = await all.makeUser("many");
  const bearers = await Promise.all(times(8, () => all.openSession(user)));
  const answers = await Promise.all(
    times(40, (n) => ask(`${at(n)}/v1/sessions`, { bearer: bearers[n % bearers.length] ?? "" })),
  );
  expect(
    countOf(
      answers.map(({ status }) => status),
      (status) => status === 200,
    ),
  ).toBe(atOnce.read);
});

const elsewhere: Record<string, string>[] = [
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

test("who begins log-ins without end is stopped, whatever he says of where he comes from; log-ins under way go on", async () => {
  const begun: number[] = [];
  for (const [n, headers] of elsewhere.entries()) begun.push((await ask(`${at(n)}/login`, { headers })).status);
  expect(countOf(begun, (status) => status !== 429)).toBe(atOnce.login);
  expect(begun.slice(atOnce.login)).toEqual(begun.slice(atOnce.login).map(() => 429));

  // To come back from the provider is counted apart, so that a flood of beginnings keeps nobody from arriving.
  const arrived = await Promise.all(times(20, (n) => ask(`${at(n)}/login/callback?state=of-nobody`)));
  expect(
    countOf(
      arrived.map(({ status }) => status),
      (status) => status === 400,
    ),
  ).toBe(atOnce.write);
  const guesses = await Promise.all(
    times(5, (n) =>
      ask(`${at(n)}/login/token`, { method: "POST", body: { code: "c", code_verifier: "v".repeat(43) } }),
    ),
  );
  expect(
    countOf(
      guesses.map(({ status }) => status),
      (status) => status === 429,
    ),
  ).toBe(5);
  // Who is logged in is not held up by strangers at the same address.
  expect((await ask(`${at(0)}/v1/sessions`, { bearer: await session("bystander") })).status).toBe(200);
});

test("every server bounds how long headers may take, and says how long it keeps a connection", async () => {
  // Seconds in which this process was awake: the servers are in it, and look for late requests once in each.
  let seconds = 0;
  const clock = setInterval(() => seconds++, 1_000);
  await Promise.all(
    all.running.map(async ({ name, url }) => {
      const heard = await hear(url, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Half: ");
      expect([name, statusOf(heard)]).toEqual([name, 408]);
      expect(seconds).toBeLessThan(9); // Five for the headers; for a whole request it is ten.
      const kept = await askRaw(url, ["GET /livez HTTP/1.1", "Host: localhost", "X-Last: 1"], "GET / HTTP/9.9\r\n\r\n");
      expect(kept).toMatch(/keep-alive: timeout=72/i);
    }),
  ).finally(() => clearInterval(clock));
});

test.each([
  ["more headers than fit", times(2_000, (n) => `X-${n}: ${n}`)],
  ["one header without an end", [`X-Long: ${"a".repeat(17_000)}`]],
])("%s are refused", async (_what, headers) => {
  for (const { url } of all.running)
    expect(statusOf(await askRaw(url, ["GET /livez HTTP/1.1", "Host: localhost", ...headers]))).toBe(431);
});
