/**
 * A revoked session, role or right can no longer be used, not even through a stored response, and no caller sees a response
 * stored under another caller's key; at two gateways (reference 5.2 and 5.6).
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startAll, tokenFor, type User } from "../all-services.ts";
import { send } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let admin: User;
beforeAll(async () => {
  all = await startAll({ gateways: 2 });
  admin = await all.createUser("admin");
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = (n = 0) => all.gateways[n] ?? "";
const openSession = (user: User) => all.openSession(user);

const adminAction = (bearer: string, path: string, { body = {}, key = randomUUID() as string, at = 0 } = {}) =>
  send(`${gateway(at)}${path}`, {
    method: "POST",
    bearer,
    headers: { "idempotency-key": key },
    body: { reason: "a test", ...body },
  });

test("logout, deletion and suspension end earlier sessions at every gateway permanently", async () => {
  const statuses = (bearer: string) =>
    Promise.all(all.gateways.map(async (url) => (await send(`${url}/v1/me`, { bearer })).status));
  const leaver = await all.createUser("leaver");
  const [first, second] = [await openSession(leaver), await openSession(leaver)];
  expect(await statuses(first)).toEqual([200, 200]);
  expect((await send(`${gateway()}/logout`, { method: "POST", bearer: first })).status).toBe(200);
  expect([await statuses(first), await statuses(second)]).toEqual([
    [401, 401],
    [200, 200],
  ]);

  const adminToken = await openSession(admin);
  expect((await adminAction(adminToken, `/v1/admin/users/${leaver.userId}:suspend`)).status).toBe(200);
  expect(await statuses(second)).toEqual([401, 401]);
  expect((await adminAction(adminToken, `/v1/admin/users/${leaver.userId}:reinstate`)).status).toBe(200);
  expect(await statuses(second)).toEqual([401, 401]);

  const third = await openSession(leaver);
  expect((await adminAction(third, `/v1/users/${leaver.userId}:delete`)).status).toBe(200);
  expect(await statuses(third)).toEqual([401, 401]);
});

test("with a clock that is a day off, the database's clock decides which sessions are valid", async () => {
  const [alice, bob] = [await all.createUser("alice"), await all.createUser("bob")];
  const [live, over] = [await openSession(alice), await openSession(bob)];
  await all.db.query(`update gateway_bff.sessions set ends_at = now() where user_id = $1`, [bob.userId]);
  const dayMs = 86_400_000;
  for (const skewMs of [-dayMs, dayMs]) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + skewMs });
    try {
      const seen = [live, over].map(async (bearer) => (await send(`${gateway()}/v1/sessions`, { bearer })).status);
      expect(await Promise.all(seen)).toEqual([200, 401]);
    } finally {
      vi.useRealTimers();
    }
  }
});

test("a stored response is replayed only to a caller who is still allowed", async () => {
  const [adminToken, deputy, target] = [
    await openSession(admin),
    await all.createUser("deputy"),
    await all.createUser("target"),
  ];
  const raise = await adminAction(adminToken, `/v1/admin/users/${deputy.userId}:grant-role`, {
    body: { role: "ADMIN" },
  });
  expect(raise.status).toBe(200);
  const bearer = await openSession(deputy);
  const path = `/v1/admin/users/${target.userId}:suspend`;
  const replay = (at = 0) => adminAction(bearer, path, { key: "deputy-1", at });
  expect((await replay()).status).toBe(200);
  expect((await replay(1)).headers.get("idempotency-replayed")).toBe("true");
  // A token signed while the deputy was an admin, as from a gateway that has not received the change.
  const token = await tokenFor("account", { ...deputy, roles: ["ADMIN", "USER"] });
  const account = all.running.find(({ name }) => name === "account")?.url;
  const atAccount = () =>
    send(`${account}/admin/users/${target.userId}:suspend`, {
      method: "POST",
      bearer: token,
      headers: { "idempotency-key": "deputy-1" },
      body: { reason: "a test" },
    });
  expect((await atAccount()).headers.get("idempotency-replayed")).toBe("true");

  const lower = await adminAction(adminToken, `/v1/admin/users/${deputy.userId}:revoke-role`, {
    body: { role: "ADMIN" },
  });
  expect(lower.status).toBe(200);
  for (const response of [await replay(), await replay(1), await atAccount()]) {
    expect([response.status, response.code]).toEqual([403, "forbidden"]);
    expect(response.text).not.toContain(target.userId);
  }

  expect((await adminAction(adminToken, `/v1/admin/users/${deputy.userId}:suspend`)).status).toBe(200);
  expect([(await replay()).status, (await replay(1)).status]).toEqual([401, 401]);
  expect([(await atAccount()).status, (await atAccount()).code]).toEqual([403, "account-inactive"]);
});

test("two admins can use the same key independently", async () => {
  const [other, target] = [await all.createUser("other-admin"), await all.createUser("guessed")];
  const adminToken = await openSession(admin);
  expect(
    (await adminAction(adminToken, `/v1/admin/users/${other.userId}:grant-role`, { body: { role: "ADMIN" } })).status,
  ).toBe(200);
  const path = `/v1/admin/users/${target.userId}:suspend`;
  const mine = await adminAction(adminToken, path, { key: "1", body: { reason: "known to one" } });
  const theirs = await adminAction(await openSession(other), path, {
    key: "1",
    body: { reason: "known to the other" },
  });
  expect([mine, theirs].map(({ status, headers }) => [status, headers.get("idempotency-replayed")])).toEqual([
    [200, null],
    [200, null],
  ]);
  expect(theirs.text).not.toContain("known to one");
  // The key is independent per route; with another body it is a conflict that reveals nothing.
  expect((await adminAction(adminToken, `/v1/admin/users/${target.userId}:reinstate`, { key: "1" })).status).toBe(200);
  const conflict = await adminAction(adminToken, path, { key: "1", body: { reason: "something else" } });
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
])("a command with a key of %s is rejected without effect", async (_what, key) => {
  const target = await all.createUser("unharmed");
  const response = await adminAction(await openSession(admin), `/v1/admin/users/${target.userId}:suspend`, { key });
  expect([response.status, response.code]).toEqual([400, "idempotency-key-invalid"]);
  const { rows } = await all.db.query(`select status from account.users where user_id = $1`, [target.userId]);
  expect(rows).toEqual([{ status: "ACTIVE" }]);
});
