/**
 * Nobody keeps what was taken from them: not a session, not a role, not an old answer under its key; and nobody gets what is
 * kept under the key of another. Over HTTP, at two gateways with every service behind them (reference 5.2 and 5.6).
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startAll, tokenFor, type User } from "../all-services.ts";
import { ask } from "./asking.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
let admin: User;
beforeAll(async () => {
  all = await startAll({ gateways: 2 });
  admin = await all.makeUser("admin");
});
afterAll(() => all[Symbol.asyncDispose]());

const gateway = (n = 0) => all.gateways[n] ?? "";
const sessionOf = (user: User) => all.openSession(user);

const act = (bearer: string, path: string, { body = {}, key = randomUUID() as string, at = 0 } = {}) =>
  ask(`${gateway(at)}${path}`, {
    method: "POST",
    bearer,
    headers: { "idempotency-key": key },
    body: { reason: "a test", ...body },
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
  const [alice, bob] = [await all.makeUser("alice"), await all.makeUser("bob")];
  const [live, over] = [await sessionOf(alice), await sessionOf(bob)];
  await all.db.query(`update gateway_bff.sessions set ends_at = now() where user_id = $1`, [bob.userId]);
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
  const { rows } = await all.db.query(`select status from account.users where user_id = $1`, [target.userId]);
  expect(rows).toEqual([{ status: "ACTIVE" }]);
});
