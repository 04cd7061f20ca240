/** Bodies, queries and paths that are easy to misread, through the gateway to the service (reference 5.7). */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll, type User } from "../all-services.ts";
import { parseStatus, send, sendRaw } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let user: User;
let bearer = "";
let adminToken = "";
beforeAll(async () => {
  all = await startAll();
  user = await all.createUser("alice");
  bearer = await all.openSession(user);
  adminToken = await all.openSession(await all.createUser("admin"));
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = () => all.gateways[0] ?? "";

async function readUser(): Promise<{ version: string; display_name: string | null }> {
  const { rows } = await all.db.query(`select version, display_name from account.users where user_id = $1`, [
    user.userId,
  ]);
  return rows[0];
}

const patch = async (body: unknown, headers: Record<string, string> = {}) =>
  send(`${gateway()}/v1/users/${user.userId}`, {
    method: "PATCH",
    bearer,
    headers: { "if-match": `"${(await readUser()).version}"`, ...headers },
    body,
  });

const utf8 = (...parts: (string | number[])[]) => Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const bodyWith = (json: string) => `{"display_name":${json}}`;

test.each<[string, () => string | Uint8Array, number]>([
  ["nothing", () => "", 400],
  ["one byte over the limit", () => bodyWith('"A"').padEnd(64 * 1024 + 1), 413],
  ["a text of 2 MB", () => bodyWith(`"${"x".repeat(2_000_000)}"`), 413],
  ["ten thousand levels", () => `{"display_name":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, 400],
  ["six thousand fields", () => `{${Array.from({ length: 6_000 }, (_, n) => `"${n}":1`).join()}}`, 400],
  ["a field twice", () => `{"display_name":"A","display_name":"B"}`, 400],
  ["a field twice, once with escapes", () => `{"display_name":"A","display\\u005fname":"B"}`, 400],
  ["a byte order mark", () => utf8([0xef, 0xbb, 0xbf], bodyWith('"A"')), 400],
  ["trailing content", () => `${bodyWith('"A"')} {}`, 400],
  ["a comment", () => `/* */${bodyWith('"A"')}`, 400],
  ["a trailing comma", () => `{"display_name":"A",}`, 400],
  ["single quotes", () => `{'display_name':'A'}`, 400],
  ["NaN", () => bodyWith("NaN"), 400],
  ["1e400", () => bodyWith("1e400"), 400],
  ["-0", () => bodyWith("-0"), 400],
  ["2^53 + 1", () => bodyWith("9007199254740993"), 400],
  ["2^63", () => bodyWith("9223372036854775808"), 400],
  ["a number for a text", () => bodyWith("5"), 400],
  ["a list for a text", () => bodyWith(`["A"]`), 400],
  ["an object for a text", () => bodyWith(`{"$gt":""}`), 400],
  ["NUL, escaped", () => bodyWith('"a\\u0000b"'), 400],
  ["NUL, raw", () => bodyWith('"a\0b"'), 400],
  ["a C0 control", () => bodyWith('"a\\u001bb"'), 400],
  ["a C1 control", () => bodyWith('"a\\u009bb"'), 400],
  ["a bidirectional override", () => bodyWith('"a\\u202eb"'), 400],
  ["a line separator", () => bodyWith('"a\\u2028b"'), 400],
  ["a lone surrogate, escaped", () => bodyWith('"\\ud83d"'), 400],
  ["a lone surrogate, raw", () => utf8('{"display_name":"', [0xed, 0xa0, 0x80], '"}'), 400],
  ["an overlong slash", () => utf8('{"display_name":"', [0xc0, 0xaf], '"}'), 400],
  ["a truncated character", () => utf8('{"display_name":"', [0xe3, 0x81], '"}'), 400],
  ["UTF-16", () => Buffer.from(bodyWith('"A"'), "utf16le"), 400],
])("a body with %s is rejected and changes nothing", async (_what, body, status) => {
  const before = await readUser();
  const response = await patch(body());
  expect([response.status, response.headers.get("content-type")]).toEqual([
    status,
    "application/problem+json; charset=utf-8",
  ]);
  expect(await readUser()).toEqual(before);
});

test.each<[string, Record<string, string>, () => string | Uint8Array]>([
  ["compressed with gzip", { "content-encoding": "gzip" }, () => gzipSync(Buffer.alloc(10_000_000, " "))],
  ["of an unknown encoding", { "content-encoding": "br, gzip" }, () => bodyWith('"A"')],
  ["labelled as text", { "content-type": "text/plain" }, () => bodyWith('"A"')],
  ["labelled as a form", { "content-type": "application/x-www-form-urlencoded" }, () => "display_name=A"],
  ["labelled as two types", { "content-type": "application/json, text/plain" }, () => bodyWith('"A"')],
  ["in another charset", { "content-type": "application/json; charset=utf-16" }, () => bodyWith('"A"')],
  ["labelled as XML", { "content-type": "application/xml" }, () => "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///'>]><a/>"],
])("a body that is %s gets 415", async (_what, headers, body) => {
  const before = await readUser();
  expect((await patch(body(), headers)).status).toBe(415);
  expect(await readUser()).toEqual(before);
});

test("a wrong Content-Length smuggles no request", async () => {
  const head = [
    `PATCH /v1/users/${user.userId} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${bearer}`,
    `If-Match: "${(await readUser()).version}"`,
    "Content-Type: application/json",
  ];
  const smuggled = `GET /v1/admin/users HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
  const before = await readUser();
  const both = [...head, "Transfer-Encoding: chunked", "Content-Length: 4"];
  const received = await sendRaw(gateway(), both, `0\r\n\r\n${smuggled}`);
  expect(parseStatus(received)).toBe(400);
  expect(received).not.toContain("users");
  const short = await sendRaw(gateway(), [...head, "Content-Length: 5", "Connection: close"], bodyWith('"A"'));
  expect(parseStatus(short)).toBe(400);
  expect(await readUser()).toEqual(before);
});

test.each([
  "limit=1&limit=2",
  "limit[]=1",
  "limit[a]=1",
  "limit=1e1",
  "limit=0x1",
  "limit=%31%00",
  "Limit=1",
  "limit=",
])("an ambiguous query is rejected: %s", async (query) => {
  const response = await send(`${gateway()}/v1/users/${user.userId}/entitlements?${query}`, { bearer });
  expect([response.status, response.code]).toEqual([400, "invalid-request"]);
});

test.each([
  "/v1/../v1/users/ID",
  "/v1/%2e%2e/v1/users/ID",
  "/v1/%2e%2e%2fv1/users/ID",
  "/v1/users/ID%2f..%2f..%2fadmin%2fusers",
  "/v1/users/ID/",
  "//v1/users/ID",
  "/v1//users/ID",
  "/v1/users/ID;admin=1",
  "/v1/users/ID%00.json",
  "/v1/users/ID%23",
  "/v1/users/%252e%252e/admin",
  "/V1/users/ID",
  "/v1/USERS/ID",
  "/v1\\users\\ID",
  "http://evil.example/v1/admin/users",
])("an ambiguous path leads nowhere: %s", async (path) => {
  // Raw, because an HTTP client would normalise the path.
  const received = await sendRaw(gateway(), [
    `GET ${path.replace("ID", user.userId)} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    `Authorization: Bearer ${bearer}`,
  ]);
  expect([400, 403, 404], received).toContain(parseStatus(received));
});

test.each([
  "' or '1'='1",
  "'; drop table users; --",
  "%' union select * from account.users --",
  "$1",
  "\\'; select pg_sleep(5); --",
  "E'\\\\x41'",
  "a\u0301", // Not normalised.
  "\u00e1",
  "👩‍👩‍👧‍👦",
  "𝕋𝕠𝕕𝕠𝕜𝕖",
  "<script>alert(1)</script>",
  "{{7*7}}#{7*7}",
])("text that looks like code is stored unchanged: %s", async (name) => {
  const response = await patch({ display_name: name });
  expect([response.status, JSON.parse(response.text).display_name]).toEqual([200, name]);
  expect((await readUser()).display_name).toBe(name);
});

test.each(["' or 1=1 --", "%", "_", "*", "') or ('1'='1"])("a search for %s finds no user", async (term) => {
  for (const query of [{ email: term }, { provider: term, subject: term }]) {
    const response = await send(`${gateway()}/v1/admin/users?${new URLSearchParams(query)}`, { bearer: adminToken });
    expect([response.status, JSON.parse(response.text).users]).toEqual([200, []]);
  }
});

test.each([
  "+275760-09-13T00:00:00Z",
  "0000-00-00T00:00:00Z",
  "0000-01-01T00:00:00Z",
  "2999-02-30T00:00:00Z",
  "2999-01-01T24:00:00Z",
  "2999-01-01T00:00:00",
  "2999-01-01",
  "2999-01-01T00:00:00+24:00",
  "2999-01-01T00:00:00 Z",
  "2999-01-01T00:00:00Z[Asia/Tokyo]",
  "infinity",
  "now",
  "32503680000",
])("a suspension until %s is rejected", async (until) => {
  const target = await all.createUser("timed");
  const response = await send(`${gateway()}/v1/admin/users/${target.userId}:suspend`, {
    method: "POST",
    bearer: adminToken,
    headers: { "idempotency-key": "until" },
    body: { reason: "a test", until },
  });
  expect([400, 422], response.text).toContain(response.status);
  const { rows } = await all.db.query(`select status from account.users where user_id = $1`, [target.userId]);
  expect(rows).toEqual([{ status: "ACTIVE" }]);
});

test("texts of the maximum length cause no slow regular expression", async () => {
  const fills = [
    " ".repeat(60_000),
    "a ".repeat(30_000),
    `${" ".repeat(59_999)}a`,
    "\u200d".repeat(20_000),
    "-".repeat(60_000),
  ];
  const headers = [
    "a-".repeat(3_500),
    "a,".repeat(3_500),
    " ".repeat(7_000),
    "a;q=".repeat(1_700),
    `"${"\\".repeat(7_000)}`,
  ];
  // CPU time of this process, which runs all services; a busy machine does not change it.
  const before = process.threadCpuUsage();
  for (const fill of fills) {
    expect((await patch({ display_name: fill })).status).toBe(400);
    expect((await patch({ locale: fill })).status).toBe(400);
  }
  for (const value of headers)
    for (const name of [
      "accept-language",
      "accept",
      "if-match",
      "idempotency-key",
      "cookie",
      "traceparent",
      "forwarded",
    ])
      await send(`${gateway()}/v1/me`, { bearer, headers: { [name]: `x${value}x` } });
  // For about fifty requests; a slow expression would need more for one.
  const { user: workedUs } = process.threadCpuUsage(before);
  expect(workedUs).toBeLessThan(5_000_000);
});
