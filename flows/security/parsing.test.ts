/**
 * Bodies, queries and paths that were made to be misread, through the gateway to the service that keeps what they say, over
 * HTTP (reference 5.7). How each rule is kept is tested in packages/http; this is what a player can reach of it.
 */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll, type User } from "../all-services.ts";
import { ask, askRaw, statusOf } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let user: User;
let bearer = "";
let boss = "";
beforeAll(async () => {
  all = await startAll();
  user = await all.makeUser("alice");
  bearer = await all.openSession(user);
  boss = await all.openSession(await all.makeUser("admin"));
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = () => all.gateways[0] ?? "";

async function row(): Promise<{ version: string; display_name: string | null }> {
  const { rows } = await all.db.query(`select version, display_name from account.users where user_id = $1`, [
    user.userId,
  ]);
  return rows[0];
}

const patch = async (body: unknown, headers: Record<string, string> = {}) =>
  ask(`${gateway()}/v1/users/${user.userId}`, {
    method: "PATCH",
    bearer,
    headers: { "if-match": `"${(await row()).version}"`, ...headers },
    body,
  });

const utf8 = (...parts: (string | number[])[]) => Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const named = (json: string) => `{"display_name":${json}}`;

test.each<[string, () => string | Uint8Array, number]>([
  ["nothing", () => "", 400],
  ["one byte over the limit", () => named('"A"').padEnd(64 * 1024 + 1), 413],
  ["a text of 2 MB", () => named(`"${"x".repeat(2_000_000)}"`), 413],
  ["ten thousand levels", () => `{"display_name":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, 400],
  ["six thousand fields", () => `{${Array.from({ length: 6_000 }, (_, n) => `"${n}":1`).join()}}`, 400],
  ["a field twice", () => `{"display_name":"A","display_name":"B"}`, 400],
  ["a field twice, once with escapes", () => `{"display_name":"A","display\\u005fname":"B"}`, 400],
  ["a byte order mark", () => utf8([0xef, 0xbb, 0xbf], named('"A"')), 400],
  ["something behind it", () => `${named('"A"')} {}`, 400],
  ["a comment", () => `/* */${named('"A"')}`, 400],
  ["a comma too many", () => `{"display_name":"A",}`, 400],
  ["single quotes", () => `{'display_name':'A'}`, 400],
  ["NaN", () => named("NaN"), 400],
  ["1e400", () => named("1e400"), 400],
  ["-0", () => named("-0"), 400],
  ["2^53 + 1", () => named("9007199254740993"), 400],
  ["2^63", () => named("9223372036854775808"), 400],
  ["a number for a text", () => named("5"), 400],
  ["a list for a text", () => named(`["A"]`), 400],
  ["an object for a text", () => named(`{"$gt":""}`), 400],
  ["NUL, escaped", () => named('"a\\u0000b"'), 400],
  ["NUL, raw", () => named('"a\0b"'), 400],
  ["a C0 control", () => named('"a\\u001bb"'), 400],
  ["a C1 control", () => named('"a\\u009bb"'), 400],
  ["text that is turned round", () => named('"a\\u202eb"'), 400],
  ["a line separator", () => named('"a\\u2028b"'), 400],
  ["half a character, escaped", () => named('"\\ud83d"'), 400],
  ["half a character, raw", () => utf8('{"display_name":"', [0xed, 0xa0, 0x80], '"}'), 400],
  ["an overlong slash", () => utf8('{"display_name":"', [0xc0, 0xaf], '"}'), 400],
  ["a character cut off", () => utf8('{"display_name":"', [0xe3, 0x81], '"}'), 400],
  ["UTF-16", () => Buffer.from(named('"A"'), "utf16le"), 400],
])("a body with %s changes nothing", async (_what, body, status) => {
  const before = await row();
  const answer = await patch(body());
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    status,
    "application/problem+json; charset=utf-8",
  ]);
  expect(await row()).toEqual(before);
});

test.each<[string, Record<string, string>, () => string | Uint8Array]>([
  ["packed with gzip", { "content-encoding": "gzip" }, () => gzipSync(Buffer.alloc(10_000_000, " "))],
  ["packed with nothing known", { "content-encoding": "br, gzip" }, () => named('"A"')],
  ["called text", { "content-type": "text/plain" }, () => named('"A"')],
  ["called a form", { "content-type": "application/x-www-form-urlencoded" }, () => "display_name=A"],
  ["called two things", { "content-type": "application/json, text/plain" }, () => named('"A"')],
  ["in another encoding", { "content-type": "application/json; charset=utf-16" }, () => named('"A"')],
  ["called XML", { "content-type": "application/xml" }, () => "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///'>]><a/>"],
])("a body that is %s is not read", async (_what, headers, body) => {
  const before = await row();
  expect((await patch(body(), headers)).status).toBe(415);
  expect(await row()).toEqual(before);
});

test("a Content-Length that lies cuts nothing into another's request", async () => {
  const head = [
    `PATCH /v1/users/${user.userId} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${bearer}`,
    `If-Match: "${(await row()).version}"`,
    "Content-Type: application/json",
  ];
  const smuggled = `GET /v1/admin/users HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${boss}\r\n\r\n`;
  const before = await row();
  const both = [...head, "Transfer-Encoding: chunked", "Content-Length: 4"];
  const heard = await askRaw(gateway(), both, `0\r\n\r\n${smuggled}`);
  expect(statusOf(heard)).toBe(400);
  expect(heard).not.toContain("users");
  const short = await askRaw(gateway(), [...head, "Content-Length: 5", "Connection: close"], named('"A"'));
  expect(statusOf(short)).toBe(400);
  expect(await row()).toEqual(before);
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
])("a question that can be read in two ways is refused: %s", async (query) => {
  const answer = await ask(`${gateway()}/v1/users/${user.userId}/entitlements?${query}`, { bearer });
  expect([answer.status, answer.code]).toEqual([400, "invalid-request"]);
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
])("a path that could mean another leads nowhere: %s", async (path) => {
  // Written by hand, for a client would put it in order first.
  const heard = await askRaw(gateway(), [
    `GET ${path.replace("ID", user.userId)} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    `Authorization: Bearer ${bearer}`,
  ]);
  expect([400, 403, 404], heard).toContain(statusOf(heard));
});

test.each([
  "' or '1'='1",
  "'; drop table users; --",
  "%' union select * from account.users --",
  "$1",
  "\\'; select pg_sleep(5); --",
  "E'\\\\x41'",
  "a\u0301", // Not made into one character with its twin.
  "\u00e1",
  "👩‍👩‍👧‍👦",
  "𝕋𝕠𝕕𝕠𝕜𝕖",
  "<script>alert(1)</script>",
  "{{7*7}}#{7*7}",
])("text that is code elsewhere is kept as text: %s", async (name) => {
  const answer = await patch({ display_name: name });
  expect([answer.status, JSON.parse(answer.text).display_name]).toEqual([200, name]);
  expect((await row()).display_name).toBe(name);
});

test.each(["' or 1=1 --", "%", "_", "*", "') or ('1'='1"])(
  "a search for %s finds who is called so: nobody",
  async (asked) => {
    for (const query of [{ email: asked }, { provider: asked, subject: asked }]) {
      const answer = await ask(`${gateway()}/v1/admin/users?${new URLSearchParams(query)}`, { bearer: boss });
      expect([answer.status, JSON.parse(answer.text).users]).toEqual([200, []]);
    }
  },
);

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
])("no suspension until %s", async (until) => {
  const target = await all.makeUser("timed");
  const answer = await ask(`${gateway()}/v1/admin/users/${target.userId}:suspend`, {
    method: "POST",
    bearer: boss,
    headers: { "idempotency-key": "until" },
    body: { reason: "a test", until },
  });
  expect([400, 422], answer.text).toContain(answer.status);
  const { rows } = await all.db.query(`select status from account.users where user_id = $1`, [target.userId]);
  expect(rows).toEqual([{ status: "ACTIVE" }]);
});

test("no text makes a pattern run away: what fills every bound is answered like anything else", async () => {
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
  // What this process, in which all services are, has worked; not how long it was kept from it.
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
      await ask(`${gateway()}/v1/me`, { bearer, headers: { [name]: `x${value}x` } });
  // Fifty answers; a pattern that runs away would take longer over a single one.
  const { user: workedUs } = process.threadCpuUsage(before);
  expect(workedUs).toBeLessThan(5_000_000);
});
