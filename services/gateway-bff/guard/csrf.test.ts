import { expect, test } from "vitest";
import { origin, ours, setup } from "./testing.ts";

test("a page of our own origin may change things", async () => {
  await using t = await setup();
  const cookie = t.cookie(await t.loggedIn());
  for (const headers of [
    ours,
    { ...ours, "sec-fetch-site": "same-origin" },
    { "x-todoke-request": "yes", "sec-fetch-site": "same-origin" },
  ])
    expect((await t.post({ ...cookie, ...headers })).statusCode, JSON.stringify(headers)).toBe(200);
});

const header = { "x-todoke-request": "1" };

test.each<[string, Record<string, string>]>([
  ["nothing of it", {}],
  ["the header alone", header],
  ["our origin alone, as a form of our own would", { origin }],
  ["Sec-Fetch-Site alone", { "sec-fetch-site": "same-origin" }],
  ["Origin: null", { ...header, origin: "null" }],
  ["an empty Origin", { ...header, origin: "" }],
  ["another site", { ...header, origin: "https://app.evil" }],
  ["a site that begins like ours", { ...header, origin: `${origin}.evil` }],
  ["a site that ends like ours", { ...header, origin: "https://evil-play.example" }],
  ["a sibling", { ...header, origin: "https://shop.example" }],
  ["our host over http", { ...header, origin: "http://play.example" }],
  ["another port of our host", { ...header, origin: `${origin}:8443` }],
  ["our origin with a path", { ...header, origin: `${origin}/` }],
  ["our origin in capitals", { ...header, origin: origin.toUpperCase() }],
  ["two origins", { ...header, origin: `${origin}, https://app.evil` }],
  ["Sec-Fetch-Site: cross-site", { ...header, "sec-fetch-site": "cross-site" }],
  ["Sec-Fetch-Site: same-site, a sibling", { ...header, "sec-fetch-site": "same-site" }],
  ["Sec-Fetch-Site: none", { ...header, "sec-fetch-site": "none" }],
  ["our origin, and yet cross-site", { ...ours, "sec-fetch-site": "cross-site" }],
  ["same-origin, and yet another's origin", { ...header, "sec-fetch-site": "same-origin", origin: "https://app.evil" }],
])("a request with the cookie and %s changes nothing", async (_what, headers) => {
  await using t = await setup();
  const cookie = t.cookie(await t.loggedIn());
  for (const where of [{}, { payload: "" }, { url: "/logout", payload: "" }, { url: "/logout", payload: "{}" }]) {
    const answer = await t.post({ ...cookie, ...headers }, where);
    expect([answer.statusCode, answer.json().code]).toEqual([403, "csrf-refused"]);
  }
  expect(t.changes).not.toHaveBeenCalled();
  expect(t.find).not.toHaveBeenCalled();
});

test("a form of another site is refused, whatever its content type", async () => {
  await using t = await setup();
  const cookie = t.cookie(await t.loggedIn());
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
    expect((await t.post({ ...cookie, "content-type": type, origin: "https://app.evil" })).statusCode).toBe(403);
    expect((await t.post({ ...cookie, ...ours, "content-type": type })).statusCode).toBe(415);
  }
  expect(t.changes).not.toHaveBeenCalled();
});

test("no header overrides the method", async () => {
  await using t = await setup();
  const cookie = t.cookie(await t.loggedIn());
  for (const name of ["x-http-method-override", "x-http-method", "x-method-override"]) {
    expect((await t.post({ ...cookie, [name]: "GET" })).statusCode).toBe(403);
    expect((await t.get({ ...cookie, [name]: "POST" })).statusCode).toBe(200);
    expect((await t.get({ ...cookie, ...ours, [name]: "POST" }, "/v1/change")).statusCode).toBe(405);
  }
  expect((await t.get(cookie, "/v1/me?_method=POST")).statusCode).toBe(400);
  expect(t.changes).not.toHaveBeenCalled();
});

test("no response has CORS headers", async () => {
  await using t = await setup();
  const cookie = t.cookie(await t.loggedIn());
  const from = { ...cookie, origin: "https://app.evil" };
  const asking = {
    ...from,
    "access-control-request-method": "POST",
    "access-control-request-headers": "x-todoke-request",
  };
  const answers = [
    await t.get(from),
    await t.post(from),
    await t.app.inject({ method: "OPTIONS", url: "/v1/change", headers: asking }),
  ];
  for (const { headers } of answers) {
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
  expect(answers.at(-1)?.statusCode).toBe(405);
  const jsonp = await t.get(cookie, "/v1/me?callback=steal");
  expect([jsonp.statusCode, jsonp.headers["x-content-type-options"]]).toEqual([400, "nosniff"]);
});

test("a native client needs no CSRF header", async () => {
  await using t = await setup();
  const authorization = `Bearer ${await t.loggedIn()}`;
  expect((await t.post({ authorization })).statusCode).toBe(200);
  expect((await t.post({ authorization, origin: "null" })).statusCode).toBe(200);
});
