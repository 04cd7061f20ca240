import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { startAll } from "./all-services.ts";

test("a user that a restore of account has lost is created once, and the player's session follows", async () => {
  await using all = await startAll({ gateways: 2 });
  const [player, admin] = [await all.createUser("player"), await all.createUser("admin")];
  const [token, adminToken] = [await all.openSession(player), await all.openSession(admin)];
  await all.db.query(
    `update gateway_bff.sessions set issuer = 'https://id.example', subject = 'player' where user_id = $1`,
    [player.userId],
  );
  const ask = async (path: string, bearer = token, gateway = 0) => {
    const response = await fetch(all.gateways[gateway] + path, { headers: { authorization: `Bearer ${bearer}` } });
    return { status: response.status, body: (await response.json()) as { user_id?: string; code?: string } };
  };
  expect((await ask("/v1/me")).body.user_id).toBe(player.userId);

  for (const table of ["audit_logs", "account_roles", "identities", "users"])
    await all.db.query(`delete from account.${table} where user_id = $1`, [player.userId]);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => ask("/v1/me", token, n % 2)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  const ids = new Set(answers.map(({ body }) => body.user_id));
  expect(ids.size).toBe(1);
  const [userId = ""] = [...ids];
  expect(userId).not.toBe(player.userId);
  const { rows } = await all.db.query(`select user_id from account.identities where subject = 'player'`);
  expect(rows).toEqual([{ user_id: userId }]);
  expect((await ask(`/v1/users/${userId}/profile`)).status).toBe(200);
  expect((await ask(`/v1/users/${player.userId}/profile`)).status).toBe(403);

  const suspended = await fetch(`${all.gateways[0]}/v1/admin/users/${userId}:suspend`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${adminToken}`,
      "idempotency-key": randomUUID(),
      "content-type": "application/json",
    },
    body: JSON.stringify({ reason: "cheating" }),
  });
  expect(suspended.status).toBe(200);
  expect([401, 403]).toContain((await ask("/v1/me", token, 1)).status);
});
