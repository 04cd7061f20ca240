/**
 * Nobody gets at what is another's, whatever way they name it, and nobody keeps what was taken from them. Over HTTP, at two
 * gateways with every service behind them (reference 5.2, 5.5 and 5.6; who may call which route is flows/who-may.test.ts).
 */
import { randomUUID } from "node:crypto";
import { fixedId } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startAll, tokenFor, type User } from "../all-services.ts";
import { ask, type Wish } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, bob, admin]: User[] = [];
beforeAll(async () => {
  all = await startAll({ gateways: 2 });
  [alice, bob, admin] = [await all.makeUser("alice"), await all.makeUser("bob"), await all.makeUser("admin")];
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = (n = 0) => all.gateways[n] ?? "";
const idOf = (user: User | undefined) => user?.userId ?? "";
const sessionOf = (user: User | undefined) => all.openSession(user as User);

/** The user as account has it, whoever asks. */
async function rowOf(user: User | undefined): Promise<unknown> {
  const { rows } = await all.db.query(
    `select u.*, array(select role from account.account_roles r where r.user_id = u.user_id order by 1) as roles
       from account.users u where user_id = $1`,
    [idOf(user)],
  );
  return rows[0];
}

const act = (bearer: string, path: string, { body = {}, key = randomUUID() as string, at = 0 } = {}) =>
  ask(`${gateway(at)}${path}`, {
    method: "POST",
    bearer,
    headers: { "idempotency-key": key },
    body: { reason: "a test", ...body },
  });

/** Every way in which somebody tried to write an id that is not quite theirs. */
const spellings = (own: string, other: string): string[] => [
  other,
  other.toUpperCase(),
  own.toUpperCase(),
  `%20${own}%20`,
  `${own}%20`,
  `${own},${other}`,
  `%5B%22${other}%22%5D`,
  `%7B%22$ne%22:null%7D`,
  "0",
  "1e3",
  "-1",
  "null",
  "undefined",
  "me",
  "*",
  "%25",
  `${own};${other}`,
  `${own}%00`,
  `${own}%0a${other}`,
  `${own}%2f..%2f${other}`,
  `..%2f${other}`,
  `%252e%252e%252f${other}`,
  own.replaceAll("-", ""),
  `${own}'%20or%20'1'='1`,
  own.replace(/\d/, (digit) => encodeURIComponent(String.fromCodePoint(0xff10 + Number(digit)))),
];

test("no way of writing an id leads to another user, or to oneself by another name", async () => {
  const bearer = await sessionOf(alice);
  const before = await rowOf(bob);
  const ways: [path: (id: string) => string, wish: Wish][] = [
    [(id) => `/v1/users/${id}`, {}],
    [(id) => `/v1/users/${id}/profile`, {}],
    [(id) => `/v1/users/${id}/entitlements`, {}],
    [(id) => `/v1/users/${id}/export`, {}],
    [(id) => `/v1/users/${id}`, { method: "PATCH", headers: { "if-match": '"1"' }, body: { display_name: "Mine" } }],
    [(id) => `/v1/users/${id}:delete`, { method: "POST", headers: { "idempotency-key": "k" }, body: { reason: "x" } }],
  ];
  for (const [path, wish] of ways)
    for (const id of spellings(idOf(alice), idOf(bob))) {
      const { status, text } = await ask(gateway() + path(id), { ...wish, bearer });
      expect([400, 403, 404, 405], `${path(id)}: ${text}`).toContain(status);
    }
  expect(await rowOf(bob)).toEqual(before);
});

test("an admin, who may name anybody, has to name them as they are called", async () => {
  const bearer = await sessionOf(admin);
  for (const id of spellings(idOf(alice), idOf(bob)).slice(1)) {
    const { status, text } = await ask(`${gateway()}/v1/users/${id}`, { bearer });
    expect([400, 404], `${id}: ${text}`).toContain(status);
  }
});

test("whether somebody else exists cannot be told from how a player is refused", async () => {
  const gone = await all.makeUser("gone");
  await act(await sessionOf(gone), `/v1/users/${gone.userId}:delete`);
  const bearer = await sessionOf(alice);
  const token = await tokenFor("account", alice);
  const account = all.running.find(({ name }) => name === "account")?.url;
  const seen = new Set<string>();
  for (const id of [idOf(bob), fixedId(77), gone.userId])
    for (const [url, by] of [
      [`${gateway()}/v1/users/${id}`, bearer],
      [`${account}/users/${id}`, token],
    ] as const) {
      const { status, text } = await ask(url, { bearer: by });
      seen.add(`${status} ${text.replace(/"instance":"[^"]*"/, "")}`);
    }
  expect([...seen]).toEqual([expect.stringMatching(/^403 .*this belongs to another user/)]);
});

test("another's session can be neither seen nor ended, and looks like one that never was", async () => {
  await sessionOf(bob);
  const { rows } = await all.db.query(`select session_id from gateway_bff.sessions where user_id = $1`, [idOf(bob)]);
  const bearer = await sessionOf(alice);
  const end = async (id: string) => {
    const { status, text } = await ask(`${gateway()}/v1/sessions/${id}`, { method: "DELETE", bearer });
    return [status, text.replace(/"instance":"[^"]*"/, "")];
  };
  expect(await end(rows[0].session_id)).toEqual(await end(fixedId(99)));
  expect((await end(rows[0].session_id))[0]).toBe(404);
  expect((await ask(`${gateway()}/v1/sessions`, { bearer })).text).not.toContain(rows[0].session_id);
  const left = await all.db.query(`select from gateway_bff.sessions where session_id = $1`, [rows[0].session_id]);
  expect(left.rowCount).toBe(1);
});

test.each([
  ["role", { role: "ADMIN" }],
  ["roles", { roles: ["USER", "ADMIN"] }],
  ["status", { status: "ACTIVE" }],
  ["version", { version: 99 }],
  ["tenant_id", { tenant_id: "t_2" }],
  ["user_id", { user_id: fixedId(2) }],
  ["email", { email: "admin@example.com" }],
  ["suspended_until", { suspended_until: null }],
  ["created_at", { created_at: "2020-01-01T00:00:00Z" }],
  ["__proto__", `{"display_name":"A","__proto__":{"roles":["ADMIN"]}}`],
  ["constructor", `{"display_name":"A","constructor":{"prototype":{"roles":["ADMIN"]}}}`],
])("nobody becomes more by sending %s along", async (field, body) => {
  const [bearer, before] = [await sessionOf(alice), await rowOf(alice)];
  const answer = await ask(`${gateway()}/v1/users/${idOf(alice)}`, {
    method: "PATCH",
    bearer,
    headers: { "if-match": '"1"' },
    body,
  });
  expect([answer.status, answer.fields]).toEqual([400, expect.arrayContaining([`body.${field}`])]);
  expect(await rowOf(alice)).toEqual(before);
  expect(({} as { roles?: unknown }).roles).toBeUndefined();
});

test.each(["/v1/me?user_id=ID", "/v1/inbox?user_id=ID", "/v1/sessions?user_id=ID", "/v1/users/OWN/profile?user_id=ID"])(
  "whose it is cannot be asked for besides: %s",
  async (path) => {
    const filled = path.replace("ID", idOf(bob)).replace("OWN", idOf(alice));
    const answer = await ask(gateway() + filled, { bearer: await sessionOf(alice) });
    expect([answer.status, answer.fields]).toEqual([400, ["query.user_id"]]);
  },
);

test("null takes a name away, and null for the whole is refused", async () => {
  const user = await all.makeUser("named");
  const bearer = await sessionOf(user);
  const patch = (version: number, body: unknown) =>
    ask(`${gateway()}/v1/users/${user.userId}`, {
      method: "PATCH",
      bearer,
      headers: { "if-match": `"${version}"` },
      body,
    });
  expect((await patch(1, { display_name: "Aki" })).status).toBe(200);
  expect(JSON.parse((await patch(2, { display_name: null })).text)).not.toHaveProperty("display_name");
  for (const body of ["null", "[]", "7", '""']) expect((await patch(3, body)).status).toBe(400);
});

test("a log-out, a deletion and a suspension end what was opened before, at every gateway, for good", async () => {
  const statuses = (bearer: string) =>
    Promise.all(all.gateways.map(async (url) => (await ask(`${url}/v1/me`, { bearer })).status));
  const leaver = await all.makeUser("leaver");
  const [first, second] = [await sessionOf(leaver), await sessionOf(leaver)];
  expect(await statuses(first)).toEqual([200, 200]);
  expect((await ask(`${gateway()}/logout`, { method: "POST", bearer: first })).status).toBe(200);
  expect([await statuses(first), await statuses(second)]).toEqual([
    [401, 401],
    [200, 200],
  ]);

  const boss = await sessionOf(admin);
  expect((await act(boss, `/v1/admin/users/${leaver.userId}:suspend`)).status).toBe(200);
  expect(await statuses(second)).toEqual([401, 401]);
  expect((await act(boss, `/v1/admin/users/${leaver.userId}:reinstate`)).status).toBe(200);
  expect(await statuses(second)).toEqual([401, 401]);

  const third = await sessionOf(leaver);
  expect((await act(third, `/v1/users/${leaver.userId}:delete`)).status).toBe(200);
  expect(await statuses(third)).toEqual([401, 401]);
});

test("a process whose clock is a day off lets in whom the store's clock lets in, and nobody else", async () => {
  const [live, over] = [await sessionOf(alice), await sessionOf(bob)];
  await all.db.query(`update gateway_bff.sessions set ends_at = now() where user_id = $1`, [idOf(bob)]);
  const dayMs = 86_400_000;
  for (const skewMs of [-dayMs, dayMs]) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + skewMs });
    try {
      const seen = [live, over].map(async (bearer) => (await ask(`${gateway()}/v1/sessions`, { bearer })).status);
      expect(await Promise.all(seen)).toEqual([200, 401]);
    } finally {
      vi.useRealTimers();
    }
  }
});

test("an old answer is shown again only to who may still ask for it", async () => {
  const [boss, deputy, target] = [await sessionOf(admin), await all.makeUser("deputy"), await all.makeUser("target")];
  const raise = await act(boss, `/v1/admin/users/${deputy.userId}:grant-role`, { body: { role: "ADMIN" } });
  expect(raise.status).toBe(200);
  const bearer = await sessionOf(deputy);
  const path = `/v1/admin/users/${target.userId}:suspend`;
  const replay = (at = 0) => act(bearer, path, { key: "deputy-1", at });
  expect((await replay()).status).toBe(200);
  expect((await replay(1)).headers.get("idempotency-replayed")).toBe("true");
  // A token that was signed while the deputy was an admin, as if the gateway had not heard yet that this is over.
  const token = await tokenFor("account", { ...deputy, roles: ["ADMIN", "USER"] });
  const account = all.running.find(({ name }) => name === "account")?.url;
  const atAccount = () =>
    ask(`${account}/admin/users/${target.userId}:suspend`, {
      method: "POST",
      bearer: token,
      headers: { "idempotency-key": "deputy-1" },
      body: { reason: "a test" },
    });
  expect((await atAccount()).headers.get("idempotency-replayed")).toBe("true");

  const lower = await act(boss, `/v1/admin/users/${deputy.userId}:revoke-role`, { body: { role: "ADMIN" } });
  expect(lower.status).toBe(200);
  for (const answer of [await replay(), await replay(1), await atAccount()]) {
    expect([answer.status, answer.code]).toEqual([403, "forbidden"]);
    expect(answer.text).not.toContain(target.userId);
  }

  expect((await act(boss, `/v1/admin/users/${deputy.userId}:suspend`)).status).toBe(200);
  expect([(await replay()).status, (await replay(1)).status]).toEqual([401, 401]);
  expect([(await atAccount()).status, (await atAccount()).code]).toEqual([403, "account-inactive"]);
});

test("a key that another admin has used, however easy to guess, is a key of one's own", async () => {
  const [other, target] = [await all.makeUser("other-admin"), await all.makeUser("guessed")];
  const boss = await sessionOf(admin);
  expect((await act(boss, `/v1/admin/users/${other.userId}:grant-role`, { body: { role: "ADMIN" } })).status).toBe(200);
  const path = `/v1/admin/users/${target.userId}:suspend`;
  const mine = await act(boss, path, { key: "1", body: { reason: "known to one" } });
  const theirs = await act(await sessionOf(other), path, { key: "1", body: { reason: "known to the other" } });
  expect([mine, theirs].map(({ status, headers }) => [status, headers.get("idempotency-replayed")])).toEqual([
    [200, null],
    [200, null],
  ]);
  expect(theirs.text).not.toContain("known to one");
  // On another route the same key is another too; with another body it is refused, and tells nothing.
  expect((await act(boss, `/v1/admin/users/${target.userId}:reinstate`, { key: "1" })).status).toBe(200);
  const conflict = await act(boss, path, { key: "1", body: { reason: "something else" } });
  expect([conflict.status, conflict.code]).toEqual([409, "idempotency-conflict"]);
  expect(conflict.text).not.toContain("known to one");
});

test.each([
  ["nothing", ""],
  ["256 characters", "k".repeat(256)],
  ["a space", "a b"],
  ["two in one", "a, b"],
  ["what is not ASCII", "caf\u00e9"],
  ["half a quoted string", '"a'],
])("a command whose key is %s is refused before anything is done", async (_what, key) => {
  const target = await all.makeUser("unharmed");
  const answer = await act(await sessionOf(admin), `/v1/admin/users/${target.userId}:suspend`, { key });
  expect([answer.status, answer.code]).toEqual([400, "idempotency-key-invalid"]);
  expect(await rowOf(target)).toMatchObject({ status: "ACTIVE" });
});

test("no GET changes anything", async () => {
  const tables = ["account.users", "account.audit_logs", "account.outbox_events", "account.idempotency_keys"];
  tables.push(
    "gateway_bff.known_users",
    "entitlement.entitlements",
    "entitlement.outbox_events",
    "notification.notifications",
  );
  const count = async () =>
    Promise.all(tables.map(async (name) => Number((await all.db.query(`select count(*) from ${name}`)).rows[0].count)));
  const [bearer, before] = [await sessionOf(admin), await count()];
  const sessions = async () =>
    (await all.db.query(`select count(*) from gateway_bff.sessions where user_id = $1`, [idOf(admin)])).rows;
  const open = await sessions();
  const gets = all.running.filter(({ name }) => name === "gateway-bff")[0]?.routes.filter((r) => r.method === "GET");
  expect(gets?.length).toBeGreaterThan(15);
  for (const { route } of gets ?? []) {
    if (route.url.endsWith("/stream")) continue; // It has no end; flows/live-inbox.test.ts follows it.
    const path = route.url.replace(/:user_id/, idOf(admin)).replace(/:service/, "account");
    for (const query of ["", "?_method=DELETE"])
      await ask(gateway() + path + query, { bearer, headers: { "x-http-method-override": "DELETE" } });
  }
  expect([await count(), await sessions()]).toEqual([before, open]);
});
