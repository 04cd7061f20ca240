import { fixedId } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { alice, bob, setup } from "../testing.ts";

test("a user lists their sessions, ends one, and ends all others", async () => {
  await using t = await setup();
  const app = await t.process();
  const [phone, laptop, console_, other] = [
    await t.logIn(alice),
    await t.logIn(alice),
    await t.logIn(alice),
    await t.logIn(bob),
  ];
  const list = async ({ headers }: typeof phone) => {
    const answer = await app.inject({ url: "/v1/sessions", headers });
    return answer.statusCode === 200 ? answer.json().sessions : answer.statusCode;
  };
  const shown = await list(phone);
  expect(shown).toHaveLength(3);
  expect(shown).toContainEqual({
    session_id: phone.sessionId,
    client: "native",
    created_at: expect.stringMatching(/Z$/),
    last_seen_at: expect.stringMatching(/Z$/),
    ends_at: expect.stringMatching(/Z$/),
    current: true,
  });
  expect(shown.filter(({ current }: { current: boolean }) => current)).toHaveLength(1);

  const end = (sessionId: string, { headers }: typeof phone) =>
    app.inject({ method: "DELETE", url: `/v1/sessions/${sessionId}`, headers });
  // Another user's session gets the same response as one that does not exist.
  for (const foreign of [other.sessionId, fixedId(99)])
    expect((await end(foreign, phone)).json()).toMatchObject({ status: 404, code: "session-not-found" });
  expect((await end(laptop.sessionId, phone)).statusCode).toBe(204);
  expect(await list(laptop)).toBe(401);
  expect(await list(other)).toHaveLength(1);

  const ended = await app.inject({ method: "POST", url: "/v1/sessions:revoke-others", headers: phone.headers });
  expect(ended.json()).toEqual({ ended: 1 });
  expect(await list(console_)).toBe(401);
  expect(await list(phone)).toHaveLength(1);
});

test("staff ends the sessions that a user has; a repetition of the request ends no newer one", async () => {
  await using t = await setup();
  let isFailing = true;
  const app = await t.process({
    sessions: (store) => ({
      ...store,
      end: (...session) => (isFailing ? Promise.reject(new Error("the process dies here")) : store.end(...session)),
    }),
  });
  const admin = await t.logIn(bob, { roles: ["USER", "ADMIN"] });
  const end = () =>
    app.inject({
      method: "POST",
      url: `/v1/admin/users/${alice}/sessions:end`,
      headers: { ...admin.headers, "idempotency-key": "k" },
      payload: { reason: "a lost phone" },
    });
  for (const _ of [1, 2]) await t.logIn(alice);
  expect((await end()).statusCode).toBe(500);
  expect(await t.sessions.list(alice)).toHaveLength(2);
  isFailing = false;
  expect((await end()).json()).toEqual({ ended: 2 });
  expect(await t.sessions.list(alice)).toEqual([]);
  const { sessionId } = await t.logIn(alice);
  expect((await end()).json()).toEqual({ ended: 2 });
  expect(await t.sessions.list(alice)).toMatchObject([{ sessionId }]);
  const { rows } = await t.db.query("select target, details from staff_acts");
  expect(rows).toEqual([{ target: alice, details: { sessions: 2 } }]);
});
