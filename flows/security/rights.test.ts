/**
 * No user reaches another user's data or changes protected fields of their own, at a gateway with every service behind it
 * (reference 5.5; flows/access-rules.test.ts tests who may call which route).
 */
import { createHmac, hash, randomBytes, randomUUID } from "node:crypto";
import { fixedId } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAll, tokenFor, type User } from "../all-services.ts";
import { type RequestOptions, send } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let [alice, bob, admin]: User[] = [];
beforeAll(async () => {
  all = await startAll();
  [alice, bob, admin] = [await all.createUser("alice"), await all.createUser("bob"), await all.createUser("admin")];
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = () => all.gateways[0] ?? "";
const userIdOf = (user: User | undefined) => user?.userId ?? "";
const openSession = (user: User | undefined) => all.openSession(user as User);

/** The user's row in account. */
async function readUser(user: User | undefined): Promise<unknown> {
  const { rows } = await all.db.query(
    `select u.*, array(select role from account.account_roles r where r.user_id = u.user_id order by 1) as roles
       from account.users u where user_id = $1`,
    [userIdOf(user)],
  );
  return rows[0];
}

/** Variants of a user ID that are not exactly the caller's own. */
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

test("no variant of a user ID reaches a user", async () => {
  const bearer = await openSession(alice);
  const before = await readUser(bob);
  const requests: [path: (id: string) => string, options: RequestOptions][] = [
    [(id) => `/v1/users/${id}`, {}],
    [(id) => `/v1/users/${id}/profile`, {}],
    [(id) => `/v1/users/${id}/entitlements`, {}],
    [(id) => `/v1/users/${id}/export`, {}],
    [(id) => `/v1/points/users/${id}/balance`, {}],
    [(id) => `/users/${id}/reserved-points`, {}],
    [(id) => `/v1/users/${id}`, { method: "PATCH", headers: { "if-match": '"1"' }, body: { display_name: "Mine" } }],
    [(id) => `/v1/users/${id}:delete`, { method: "POST", headers: { "idempotency-key": "k" }, body: { reason: "x" } }],
  ];
  for (const [path, options] of requests)
    for (const id of spellings(userIdOf(alice), userIdOf(bob))) {
      const { status, text } = await send(gateway() + path(id), { ...options, bearer });
      expect([400, 403, 404, 405], `${path(id)}: ${text}`).toContain(status);
    }
  expect(await readUser(bob)).toEqual(before);
});

test("an admin must use the exact user ID", async () => {
  const bearer = await openSession(admin);
  for (const id of spellings(userIdOf(alice), userIdOf(bob)).slice(1)) {
    const { status, text } = await send(`${gateway()}/v1/users/${id}`, { bearer });
    expect([400, 404], `${id}: ${text}`).toContain(status);
  }
});

test("a rejection does not reveal whether another user exists", async () => {
  const gone = await all.createUser("gone");
  const deletion = { method: "POST", headers: { "idempotency-key": randomUUID() }, body: { reason: "leaves" } };
  await send(`${gateway()}/v1/users/${gone.userId}:delete`, { ...deletion, bearer: await openSession(gone) });
  const bearer = await openSession(alice);
  const token = await tokenFor("account", alice);
  const account = all.running.find(({ name }) => name === "account")?.url;
  const seen = new Set<string>();
  for (const id of [userIdOf(bob), fixedId(77), gone.userId])
    for (const [url, by] of [
      [`${gateway()}/v1/users/${id}`, bearer],
      [`${account}/users/${id}`, token],
    ] as const) {
      const { status, text } = await send(url, { bearer: by });
      seen.add(`${status} ${text.replace(/"instance":"[^"]*"/, "")}`);
    }
  expect([...seen]).toEqual([expect.stringMatching(/^403 .*this belongs to another user/)]);
});

test("another user's session is 404, like one that does not exist", async () => {
  await openSession(bob);
  const { rows } = await all.db.query(`select session_id from gateway_bff.sessions where user_id = $1`, [
    userIdOf(bob),
  ]);
  const bearer = await openSession(alice);
  const end = async (id: string) => {
    const { status, text } = await send(`${gateway()}/v1/sessions/${id}`, { method: "DELETE", bearer });
    return [status, text.replace(/"instance":"[^"]*"/, "")];
  };
  expect(await end(rows[0].session_id)).toEqual(await end(fixedId(99)));
  expect((await end(rows[0].session_id))[0]).toBe(404);
  expect((await send(`${gateway()}/v1/sessions`, { bearer })).text).not.toContain(rows[0].session_id);
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
])("a PATCH with %s is rejected and changes nothing", async (field, body) => {
  const [bearer, before] = [await openSession(alice), await readUser(alice)];
  const response = await send(`${gateway()}/v1/users/${userIdOf(alice)}`, {
    method: "PATCH",
    bearer,
    headers: { "if-match": '"1"' },
    body,
  });
  expect([response.status, response.fields]).toEqual([400, expect.arrayContaining([`body.${field}`])]);
  expect(await readUser(alice)).toEqual(before);
  expect(({} as { roles?: unknown }).roles).toBeUndefined();
});

test.each(["/v1/me?user_id=ID", "/v1/inbox?user_id=ID", "/v1/sessions?user_id=ID", "/v1/users/OWN/profile?user_id=ID"])(
  "user_id is an unknown query parameter: %s",
  async (path) => {
    const filled = path.replace("ID", userIdOf(bob)).replace("OWN", userIdOf(alice));
    const response = await send(gateway() + filled, { bearer: await openSession(alice) });
    expect([response.status, response.fields]).toEqual([400, ["query.user_id"]]);
  },
);

test("null removes a name, and null as body is rejected", async () => {
  const user = await all.createUser("named");
  const bearer = await openSession(user);
  const patch = (version: number, body: unknown) =>
    send(`${gateway()}/v1/users/${user.userId}`, {
      method: "PATCH",
      bearer,
      headers: { "if-match": `"${version}"` },
      body,
    });
  expect((await patch(1, { display_name: "Aki" })).status).toBe(200);
  expect(JSON.parse((await patch(2, { display_name: null })).text)).not.toHaveProperty("display_name");
  for (const body of ["null", "[]", "7", '""']) expect((await patch(3, body)).status).toBe(400);
});

/** A ticket ID as a player could forge it: its proof is a hash of what the player knows. */
function forgedTicket(mode: string, userId: string, hashOf: (text: string) => Buffer): string {
  const random = randomBytes(12);
  const proof = hashOf(JSON.stringify([mode, userId, random.toString("hex")])).subarray(0, 9);
  return `${mode}.${Buffer.concat([random, proof]).toString("base64url")}`;
}

test("a forged ticket ID is 404 and leaves no row", async () => {
  const bearer = await openSession(alice);
  const ends = async () => (await all.db.query(`select count(*)::int from matchmaking.ticket_ends`)).rows;
  const before = await ends();
  const guesses: ((text: string) => Buffer)[] = [
    (text) => hash("sha256", text, "buffer"),
    (text) => hash("sha512", text, "buffer"),
    (text) => createHmac("sha256", "").update(text).digest(),
    (text) => createHmac("sha256", userIdOf(alice)).update(text).digest(),
    () => randomBytes(9),
    () => Buffer.alloc(9),
  ];
  for (const mode of ["duel", "ranked", "nowhere"])
    for (const hashOf of guesses) {
      const id = forgedTicket(mode, userIdOf(alice), hashOf);
      for (const [method, path] of [
        ["GET", `/v1/matchmaking/tickets/${id}`],
        ["POST", `/v1/matchmaking/tickets/${id}:heartbeat`],
        ["DELETE", `/v1/matchmaking/tickets/${id}`],
      ] as const) {
        const { status, code } = await send(gateway() + path, { method, bearer });
        expect([method, id, status, code]).toEqual([method, id, 404, "ticket-not-found"]);
      }
      const { text } = await send(`${gateway()}/v1/users/${userIdOf(alice)}/profile?ticket_id=${id}`, { bearer });
      expect(JSON.parse(text)).toMatchObject({ matchmaking: { status: "failed", code: "ticket-not-found" } });
    }
  expect(await ends()).toEqual(before);
});

test("no GET changes anything", async () => {
  // Tables that commands write; event handlers of earlier tests may still write to others.
  const tables = ["users", "identities", "account_roles", "audit_logs", "idempotency_keys", "outbox_events"]
    .map((name) => `account.${name}`)
    .concat("entitlement.entitlements", "entitlement.entitlement_audit", "entitlement.outbox_events");
  const count = async () =>
    Promise.all(tables.map(async (name) => Number((await all.db.query(`select count(*) from ${name}`)).rows[0].count)));
  const [bearer, before] = [await openSession(admin), await count()];
  const sessions = async () =>
    (await all.db.query(`select count(*) from gateway_bff.sessions where user_id = $1`, [userIdOf(admin)])).rows;
  const open = await sessions();
  const gets = all.running.filter(({ name }) => name === "gateway-bff")[0]?.routes.filter((r) => r.method === "GET");
  expect(gets?.length).toBeGreaterThan(15);
  for (const { route } of gets ?? []) {
    if (route.url.endsWith("/stream")) continue; // It has no end; flows/inbox-stream.test.ts tests it.
    const path = route.url.replace(/:user_id/, userIdOf(admin)).replace(/:service/, "account");
    for (const query of ["", "?_method=DELETE"])
      await send(gateway() + path + query, { bearer, headers: { "x-http-method-override": "DELETE" } });
  }
  expect([await count(), await sessions()]).toEqual([before, open]);
});
