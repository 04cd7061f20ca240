import { expect, test } from "vitest";
import { alice, bearerOf, bob, setup, userView } from "../testing.ts";
import { answering, refusing } from "../upstreams/testing.ts";

const command = (key: string) => ({ "idempotency-key": key, "content-type": "application/json" });

test("a player gets account's response byte for byte, with its ETag", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  for (const url of ["/v1/me", `/v1/users/${alice}`]) {
    const answer = await app.inject({ url, headers: player.headers });
    expect([answer.statusCode, answer.body]).toEqual([200, JSON.stringify(userView(alice))]);
    expect(answer.headers).toMatchObject({ etag: '"1"', "content-type": "application/json; charset=utf-8" });
  }
  expect(t.services.account.received.map(({ method, path }) => [method, path])).toEqual([
    ["GET", `/users/${alice}`],
    ["GET", `/users/${alice}`],
  ]);
});

test("a service gets the user of the session, whatever headers the client sends (W8)", async () => {
  await using t = await setup();
  const app = await t.process();
  const players = await Promise.all([alice, bob].map(async (userId) => ({ userId, ...(await t.logIn(userId)) })));
  const spoof = {
    "x-user-id": bob,
    X_User_Id: bob,
    "x-user-roles": "ADMIN",
    "x-internal-token": "let me in",
    "x-forwarded-for": "10.0.0.1",
    forwarded: "for=10.0.0.1",
    connection: "x-request-id, authorization",
    cookie: "other=1",
    "x-http-method-override": "DELETE",
    "accept-language": "ja",
  };
  const asked = Array.from({ length: 40 }, (_, n) => players[n % 2]).flatMap((player) => (player ? [player] : []));
  const answers = await Promise.all(
    asked.map(({ headers }, n) =>
      app.inject({ url: "/v1/me", headers: { ...spoof, ...headers, "x-request-id": `request-${n}` } }),
    ),
  );
  // One that is alone is read with the token of its user.
  const [first] = players;
  asked.push(...(first ? [first] : []));
  const headers = { ...spoof, ...first?.headers, "x-request-id": "request-40" };
  answers.push(await app.inject({ url: "/v1/me", headers }));
  expect(answers.map((answer) => answer.json().user_id)).toEqual(asked.map(({ userId }) => userId));
  const { received } = t.services.account;
  // Reads of several users share calls of the gateway itself.
  const shared = received.filter(({ path }) => path.startsWith("/shared-reads/"));
  expect([shared.length > 0, received.length > shared.length]).toEqual([true, true]);
  for (const one of shared)
    expect(await bearerOf("account", one)).toEqual({ kind: "service", name: "service:gateway-bff" });
  for (const one of received.filter((each) => !shared.includes(each))) {
    const n = Number(String(one.headers["x-request-id"]).slice("request-".length));
    expect(await bearerOf("account", one)).toMatchObject({ kind: "user", userId: asked[n]?.userId, roles: ["USER"] });
    expect(
      Object.keys(one.headers)
        .filter((name) => name !== "traceparent")
        .sort(),
    ).toEqual(["accept", "authorization", "connection", "host", "x-request-id"]);
  }
});

test("a token for one service is refused by another", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const answer = await app.inject({
    url: `/v1/users/${alice}/entitlements?status=ACTIVE&limit=5`,
    headers: player.headers,
  });
  expect(answer.json().entitlements).toHaveLength(1);
  const [one] = t.services.entitlement.received;
  if (!one) expect.fail("entitlement received nothing");
  expect(one.path).toBe(`/v1/users/${alice}/entitlements?status=ACTIVE&limit=5`);
  expect(await bearerOf("entitlement", one)).toMatchObject({ name: `user:${alice}` });
  await expect(bearerOf("account", one)).rejects.toMatchObject({ status: 401 });
});

test("If-Match is passed on, and account's refusals are returned unchanged", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  const patch = (payload: object, more = {}) =>
    app.inject({ method: "PATCH", url: `/v1/users/${alice}`, headers: { ...player.headers, ...more }, payload });
  expect((await patch({ display_name: null }, { "if-match": '"1"' })).statusCode).toBe(200);
  expect(t.services.account.received.at(-1)).toMatchObject({
    method: "PATCH",
    body: '{"display_name":null}',
    headers: { "if-match": '"1"' },
  });
  t.services.account.setBehaviour(refusing(412, "version-mismatch", { title: "The user was changed meanwhile" }));
  const late = await patch({ display_name: "A" }, { "if-match": '"0"', "x-request-id": "mine" });
  expect([late.statusCode, late.headers["content-type"]]).toEqual([412, "application/problem+json; charset=utf-8"]);
  expect(late.json()).toMatchObject({ code: "version-mismatch", detail: "not like this", instance: "mine" });
  // A user cannot grant themself a role with an extra field: it is not forwarded.
  t.services.account.received.length = 0;
  for (const field of ["role", "roles", "status", "version", "__proto__", "email"]) {
    const mass = await patch(JSON.parse(`{"display_name":"A","${field}":"ADMIN"}`), { "if-match": '"1"' });
    expect([field, mass.statusCode]).toEqual([field, 400]);
  }
  expect(t.services.account.received).toEqual([]);
});

test("after a suspension no process lets the user in, until the user is reinstated", async () => {
  await using t = await setup();
  const [one, other] = [await t.process(), await t.process()];
  const [player, admin] = [await t.logIn(alice), await t.logIn(bob, { roles: ["ADMIN"] })];
  const act = (name: string, key: string, user: object) => {
    t.services.account.setBehaviour(answering(userView(alice, user)));
    const [url, payload] = [`/v1/admin/users/${alice}:${name}`, { reason: "cheating" }];
    return one.inject({ method: "POST", url, headers: { ...admin.headers, ...command(key) }, payload });
  };
  const statuses = async (headers: object) =>
    Promise.all(
      [one, other].map(async (app) => (await app.inject({ url: "/v1/me", headers: { ...headers } })).statusCode),
    );
  expect(await statuses(player.headers)).toEqual([200, 200]);
  const suspended = await act("suspend", "key-1", { status: "SUSPENDED", version: 2, suspended_reason: "cheating" });
  expect([suspended.statusCode, suspended.json().status]).toEqual([200, "SUSPENDED"]);
  expect(t.services.account.received.at(-1)).toMatchObject({
    method: "POST",
    path: `/admin/users/${alice}:suspend`,
    body: '{"reason":"cheating"}',
    headers: { "idempotency-key": "key-1" },
  });
  expect(await statuses(player.headers)).toEqual([401, 401]);
  // A login that was pending changes nothing.
  const again = await t.logIn(alice, { version: 1 });
  expect(await statuses(again.headers)).toEqual([403, 403]);
  const refused = await other.inject({ url: "/v1/me", headers: again.headers });
  expect(refused.json()).toMatchObject({ code: "ACCOUNT_INACTIVE" });

  expect((await act("reinstate", "key-2", { version: 3 })).statusCode).toBe(200);
  expect(await statuses((await t.logIn(alice, { version: 3 })).headers)).toEqual([200, 200]);
  // A replay of the first command has an old version and shuts no user out.
  expect((await act("suspend", "key-1", { status: "SUSPENDED", version: 2 })).statusCode).toBe(200);
  t.services.account.setBehaviour(answering(userView(alice, { version: 3 })));
  expect(await statuses((await t.logIn(alice, { version: 3 })).headers)).toEqual([200, 200]);
});

test("a change that is not propagated gets 503, and a retry propagates it", async () => {
  await using t = await setup();
  let away = true;
  const app = await t.process({
    sessions: (store) => ({
      ...store,
      saveUser: (user) => (away ? Promise.reject(new Error("away")) : store.saveUser(user)),
    }),
  });
  const [player, admin] = [await t.logIn(alice), await t.logIn(bob, { roles: ["ADMIN"] })];
  t.services.account.setBehaviour(answering(userView(alice, { status: "SUSPENDED", version: 2 })));
  const suspend = () =>
    app.inject({
      method: "POST",
      url: `/v1/admin/users/${alice}:suspend`,
      headers: { ...admin.headers, ...command("key-1") },
      payload: { reason: "cheating" },
    });
  const first = await suspend();
  expect([first.statusCode, first.json().code, first.headers["retry-after"]]).toEqual([503, "change-not-spread", "1"]);
  away = false;
  expect((await suspend()).statusCode).toBe(200);
  expect((await app.inject({ url: "/v1/me", headers: player.headers })).statusCode).toBe(401);
});

test("/v1/me refuses a user whom account returns as suspended", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  t.services.account.setBehaviour(answering(userView(alice, { status: "SUSPENDED", version: 2 })));
  const refused = await app.inject({ url: "/v1/me", headers: player.headers });
  expect([refused.statusCode, refused.json().code]).toEqual([403, "ACCOUNT_INACTIVE"]);
  expect((await app.inject({ url: "/v1/me", headers: player.headers })).statusCode).toBe(401);
});

test("a response of account that is no user changes no session and gets 502", async () => {
  await using t = await setup();
  const [app, admin] = [await t.process(), await t.logIn(bob, { roles: ["ADMIN"] })];
  for (const wrong of [{}, [], null, userView(alice, { status: "GONE" }), userView(alice, { version: "2" })]) {
    t.services.account.setBehaviour(answering(wrong));
    const answer = await app.inject({
      method: "POST",
      url: `/v1/admin/users/${alice}:grant-role`,
      headers: { ...admin.headers, ...command("key-1") },
      payload: { role: "ADMIN", reason: "new hand" },
    });
    expect([answer.statusCode, answer.json().code]).toEqual([502, "ACCOUNT_BAD_GATEWAY"]);
  }
});

test("a command needs a valid Idempotency-Key, and a missing service gets 503", async () => {
  await using t = await setup();
  const app = await t.process({ without: ["entitlement"] });
  const [player, admin] = [await t.logIn(alice), await t.logIn(bob, { roles: ["ADMIN"] })];
  const keyless = (headers: object) =>
    app.inject({
      method: "POST",
      url: `/v1/admin/users/${alice}:suspend`,
      headers: { ...admin.headers, ...headers },
      payload: { reason: "x" },
    });
  expect((await keyless({})).json().code).toBe("idempotency-key-missing");
  expect((await keyless({ "idempotency-key": "a b" })).json().code).toBe("idempotency-key-invalid");
  expect(t.services.account.received).toEqual([]);
  const absent = await app.inject({ url: `/v1/users/${alice}/entitlements`, headers: player.headers });
  expect([absent.statusCode, absent.json().code]).toEqual([503, "ENTITLEMENT_UNAVAILABLE"]);
});

test.each([
  ["deleting one's account", `/v1/users/${alice}:delete`, { reason: "enough" }, ["USER"]],
  ["an act of an admin", `/v1/admin/users/${bob}:suspend`, { reason: "cheating" }, ["ADMIN"]],
] as const)("%s needs a fresh login", async (_name, url, payload, roles) => {
  await using t = await setup();
  const app = await t.process();
  t.services.account.setBehaviour(answering(userView(bob, { status: "SUSPENDED", version: 2 })));
  const statusWith = async (about: { authenticatedAtMs: number | null }) => {
    const { headers } = await t.logIn(alice, { roles }, about);
    const answer = await app.inject({ method: "POST", url, headers: { ...headers, ...command("key-1") }, payload });
    return [answer.statusCode, answer.json().code];
  };
  const now = await t.sessions.clock();
  expect(await statusWith({ authenticatedAtMs: now - 3_600_000 })).toEqual([403, "reauthentication-required"]);
  expect(await statusWith({ authenticatedAtMs: null })).toEqual([403, "reauthentication-required"]);
  expect(t.services.account.received).toEqual([]);
  expect(await statusWith({ authenticatedAtMs: now })).toEqual([200, undefined]);
});

test("an admin's change of another profile needs a fresh login, an own change does not", async () => {
  await using t = await setup();
  const app = await t.process();
  const { headers } = await t.logIn(alice, { roles: ["ADMIN"] }, { authenticatedAtMs: null });
  const patch = async (userId: string) => {
    const [url, payload] = [`/v1/users/${userId}`, { display_name: "A" }];
    return (await app.inject({ method: "PATCH", url, headers: { ...headers, "if-match": '"1"' }, payload })).statusCode;
  };
  expect([await patch(alice), await patch(bob)]).toEqual([200, 403]);
  expect((await app.inject({ url: `/v1/users/${bob}`, headers })).statusCode).toBe(200);
});
