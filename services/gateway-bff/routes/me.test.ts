import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { alice, bob, setup, userView } from "../testing.ts";
import { answering, type Behaviour, refusing } from "../upstreams/testing.ts";

/** An account whose only user is `user`, who has the identity of every session. */
const accountWith =
  (user: ReturnType<typeof userView>): Behaviour =>
  (response, received) => {
    const isKnown = received.path === "/identities:resolve" || received.path === `/users/${user.user_id}`;
    (isKnown ? answering(user) : refusing(404, "user-not-found"))(response, received);
  };

test("a session whose user account does not have any more gets its user anew and keeps its token", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  t.services.account.setBehaviour(accountWith(userView(bob)));
  const me = () => app.inject({ url: "/v1/me", headers: player.headers });
  // All see the same user, also when several requests find out at once.
  for (const answer of await Promise.all([me(), me(), me()]))
    expect([answer.statusCode, answer.json().user_id]).toEqual([200, bob]);
  const resolved = t.services.account.received.filter(({ path }) => path === "/identities:resolve");
  for (const { body } of resolved) expect(JSON.parse(body)).toEqual({ provider: "http://127.0.0.1:1", subject: alice });
  const calls = resolved.length;
  expect((await me()).json().user_id).toBe(bob);
  expect(t.services.account.received.filter(({ path }) => path === "/identities:resolve")).toHaveLength(calls);
  // Everything else belongs to the new user too.
  expect((await t.sessions.list(bob)).map(({ sessionId }) => sessionId)).toEqual([player.sessionId]);
  expect(await t.sessions.list(alice)).toEqual([]);
  const old = await app.inject({ url: `/v1/users/${alice}`, headers: player.headers });
  expect(old.statusCode).toBe(403);
});

test("a profile of oneself gets the user anew too, and all its parts are of that user", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  t.services.account.setBehaviour(accountWith(userView(bob)));
  const answer = await app.inject({ url: "/v1/me/profile?fields=account,points", headers: player.headers });
  expect(answer.json()).toMatchObject({ user_id: bob, account: { status: "ok", value: { user_id: bob } } });
  expect(t.services.points.received.at(-1)?.path).toBe(`/v1/points/users/${bob}/balance`);
});

test("an identity whose user is suspended is refused, and the session ends", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(alice)];
  t.services.account.setBehaviour(accountWith(userView(bob, { status: "SUSPENDED", suspended_reason: "cheating" })));
  const refused = await app.inject({ url: "/v1/me", headers: player.headers });
  expect([refused.statusCode, refused.json().code]).toEqual([403, "ACCOUNT_INACTIVE"]);
  expect((await app.inject({ url: "/v1/sessions", headers: player.headers })).statusCode).toBe(401);
});

test("another refusal of account creates no user", async () => {
  await using t = await setup();
  const [app, player] = [await t.process(), await t.logIn(fixedId(3))];
  t.services.account.setBehaviour(refusing(403, "account-inactive"));
  expect((await app.inject({ url: "/v1/me", headers: player.headers })).json().code).toBe("account-inactive");
  expect(t.services.account.received.some(({ path }) => path === "/identities:resolve")).toBe(false);
});
