import { expect, test } from "vitest";
import { newSession, userSnapshot } from "../sessions/testing.ts";
import { ours, setup } from "./testing.ts";

const unknown = `tds_${"A".repeat(43)}`;

test("a cookie or a bearer token authenticates the user with their roles", async () => {
  await using t = await setup();
  const token = await t.loggedIn({ userId: "u_1", roles: ["USER", "ADMIN"] });
  for (const headers of [t.cookie(token), { authorization: `Bearer ${token}` }, { authorization: `bearer ${token}` }]) {
    const answer = await t.get(headers);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({
      principal: { kind: "user", name: "user:u_1", userId: "u_1", roles: ["USER", "ADMIN"] },
      session: { userId: "u_1", status: "ACTIVE" },
    });
  }
});

test("the session cookie is found among others by its exact name", async () => {
  await using t = await setup();
  const token = await t.loggedIn();
  const { cookie } = t.cookie(token);
  for (const among of [`a=1; ${cookie}`, `${cookie}; b=2`, `a=1;${cookie} ; b`, `x__Host-todoke=1; ${cookie}`])
    expect((await t.get({ cookie: among })).statusCode, among).toBe(200);
  // What a sibling domain, or a page over http, could plant.
  for (const planted of [`todoke=${token}`, `__host-todoke=${token}`, `__Host-todoke-login=${token}`])
    expect((await t.get({ cookie: planted })).statusCode, planted).toBe(401);
});

test("on loopback over http the cookie has no prefix", async () => {
  await using t = await setup({ isLoopback: true });
  const token = await t.loggedIn();
  expect((await t.get({ cookie: `todoke=${token}` })).statusCode).toBe(200);
});

test("a malformed token is refused without a look-up", async () => {
  await using t = await setup();
  const token = await t.loggedIn();
  const { cookie } = t.cookie(token);
  const wrong: Record<string, string>[] = [
    {},
    { cookie: "" },
    { cookie: "a=1" },
    { cookie: `${cookie}; ${cookie}` },
    { cookie: `${cookie}; __Host-todoke=` },
    ...["", " ", token.slice(1), `${token}A`, `"${token}"`, `${token}%00`, `tdk_${"A".repeat(43)}`].map(t.cookie),
    t.cookie("A".repeat(8_192)),
    t.cookie(`tds_${"A".repeat(8_000)}`),
    t.cookie("tds_' or 1=1 --"),
    ...["", "Bearer", "Bearer ", `Basic ${token}`, token, `Bearer  ${token}`, `Bearer ${token} `].map(
      (authorization) => ({ authorization: `${authorization}x` }),
    ),
    { authorization: "Bearer tdk_dev" },
    { authorization: `Bearer ${token}, Bearer ${token}` },
    { authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1XzEifQ." },
    { authorization: `Bearer ${"A".repeat(8_000)}` },
  ];
  for (const headers of wrong) {
    const answer = await t.get(headers);
    expect([answer.statusCode, answer.json().code], JSON.stringify(headers).slice(0, 80)).toEqual([
      401,
      "unauthenticated",
    ]);
  }
  expect(t.find).not.toHaveBeenCalled();
  expect((await t.get(t.cookie(unknown))).statusCode).toBe(401);
  expect(t.find).toHaveBeenCalledTimes(1);
});

test("a request with a cookie and an Authorization header is refused", async () => {
  await using t = await setup();
  const token = await t.loggedIn();
  for (const authorization of [`Bearer ${token}`, "Bearer tdk_dev", "Basic x"]) {
    const answer = await t.get({ ...t.cookie(token), authorization });
    expect([answer.statusCode, answer.json().code]).toEqual([400, "credentials-ambiguous"]);
  }
  expect(t.find).not.toHaveBeenCalled();
});

test("a cookie is refused after a logout, a suspension and a deletion", async () => {
  await using t = await setup();
  const first = await t.loggedIn();
  await t.sessions.endAll("u_1");
  expect((await t.get(t.cookie(first))).statusCode).toBe(401);

  const second = (await t.sessions.create(newSession())).token;
  expect((await t.get(t.cookie(second))).statusCode).toBe(200);
  await t.sessions.saveUser(userSnapshot({ status: "SUSPENDED", version: 2 }));
  expect((await t.get(t.cookie(second))).statusCode).toBe(401);
  await t.sessions.saveUser(userSnapshot({ version: 3 }));
  expect((await t.get(t.cookie(second))).statusCode).toBe(401);

  const third = (await t.sessions.create(newSession())).token;
  await t.sessions.saveUser(userSnapshot({ status: "DELETED", version: 4 }));
  expect((await t.get(t.cookie(third))).statusCode).toBe(401);
});

test("a suspended user gets 403 with the end of the suspension, and can log out", async () => {
  await using t = await setup();
  const suspendedUntil = "2999-01-01T00:00:00Z";
  const until = await t.loggedIn({ userId: "u_1", status: "SUSPENDED", suspendedUntil });
  const forGood = await t.loggedIn({ userId: "u_2", status: "SUSPENDED" });
  const answer = await t.get(t.cookie(until));
  expect([answer.statusCode, answer.json().code]).toEqual([403, "ACCOUNT_INACTIVE"]);
  expect(answer.json().detail).toMatch(/^the account is suspended until 2999-01-01T00:00:00/);
  expect((await t.get({ authorization: `Bearer ${forGood}` })).json()).toMatchObject({
    code: "ACCOUNT_INACTIVE",
    detail: "the account is suspended",
  });
  expect((await t.get(t.cookie(until), "/v1/users/u_1")).statusCode).toBe(403);
  expect((await t.post({ ...t.cookie(until), ...ours })).statusCode).toBe(403);
  expect(t.changes).not.toHaveBeenCalled();
  expect((await t.post({ ...t.cookie(until), ...ours }, { url: "/logout", payload: "{}" })).statusCode).toBe(200);
});

test("a user whose suspension has expired is let in", async () => {
  await using t = await setup();
  const token = await t.loggedIn({ status: "SUSPENDED", suspendedUntil: "2020-01-01T00:00:00Z" });
  expect((await t.get(t.cookie(token))).statusCode).toBe(200);
});

test("changed roles take effect at the next request", async () => {
  await using t = await setup();
  const token = await t.loggedIn();
  const statuses = async () => (await t.get(t.cookie(token), "/v1/admin")).statusCode;
  expect(await statuses()).toBe(403);
  await t.sessions.saveUser(userSnapshot({ roles: ["USER", "ADMIN"], version: 2 }));
  expect(await statuses()).toBe(200);
  await t.sessions.saveUser(userSnapshot({ roles: ["USER"], version: 3 }));
  expect(await statuses()).toBe(403);
  expect((await t.get(t.cookie(token), "/v1/users/u_1")).statusCode).toBe(200);
  expect((await t.get(t.cookie(token), "/v1/users/u_2")).statusCode).toBe(403);
  expect((await t.get(t.cookie(token), "/v1/users/U_1")).statusCode).toBe(403);
});

test("onRefreshDue is called for a session whose tokens expire soon", async () => {
  await using t = await setup();
  const tokens = { idToken: "i", accessToken: "a", refreshToken: "r", expiresInSeconds: 600 };
  const due = await t.loggedIn({}, { tokens });
  expect((await t.get(t.cookie(due))).statusCode).toBe(200);
  expect(t.onRefreshDue).not.toHaveBeenCalled();
  await t.pass(599_000);
  expect((await t.get(t.cookie(due))).statusCode).toBe(200);
  expect(t.onRefreshDue.mock.calls.map(([session]) => session.userId)).toEqual(["u_1"]);
});

test("while the store is unavailable, requests get 503 and not 401", async () => {
  await using t = await setup();
  const token = await t.loggedIn();
  t.find.mockRejectedValue(Object.assign(new Error("away"), { code: "ECONNREFUSED" }));
  const answer = await t.get(t.cookie(token));
  expect([answer.statusCode, answer.json().code]).toEqual([503, "unavailable"]);
});
