import * as account from "@todoke/account";
import * as gateway from "@todoke/gateway-bff";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createUser, openSession, settingsFor } from "./all-services.ts";
import { serve } from "./service-process.ts";

test("a suspension reaches all gateways although the calling gateway is killed", async () => {
  await using t = await testDatabase({ sets: [] });
  const env = { ...settingsFor(t.url), LOG_LEVEL: "info" };
  for (const { migrate } of [account, gateway]) await migrate(env, { dryRun: false });
  await using accounts = await serve("account", env);
  const gatewayEnv = { ...env, ACCOUNT_URL: accounts.url };
  await using killed = await serve("gateway-bff", { ...gatewayEnv, GATEWAY_BFF_ROLES: "api" });
  await using other = await serve("gateway-bff", gatewayEnv);
  const [player, admin] = [await createUser(accounts.url, "player"), await createUser(accounts.url, "admin")];
  const [playerToken, adminToken] = [await openSession(t.db, player), await openSession(t.db, admin)];
  const suspend = (url: string) =>
    fetch(`${url}/v1/admin/users/${player.userId}:suspend`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminToken}`, "idempotency-key": "once", "content-type": "application/json" },
      body: JSON.stringify({ reason: "cheating" }),
    });
  // Answered from this gateway's own tables; most other routes would ask account, which knows of the suspension.
  const getSessions = async () =>
    (await fetch(`${other.url}/v1/sessions`, { headers: { authorization: `Bearer ${playerToken}` } })).status;
  expect(await getSessions()).toBe(200);

  // A row lock keeps every gateway from saving the player's new status.
  const lockHolder = await t.open({ idleInTransactionTimeoutMs: 120_000 }).connect();
  let isLocked = true;
  /** Closes the connection too, so that a failed test leaves no lock. */
  const releaseLock = () => {
    if (isLocked) lockHolder.release(true);
    isLocked = false;
  };
  using _ = { [Symbol.dispose]: releaseLock };
  await lockHolder.query("begin");
  await lockHolder.query(`select from gateway_bff.known_users where user_id = $1 for update`, [player.userId]);
  const suspension = suspend(killed.url).then(
    () => "answered",
    () => "cut off",
  );
  await until("account has suspended the player, and a gateway waits for the row", async () => {
    const { rows } = await t.db.query(
      `select (select status from account.users where user_id = $1) as status,
              (select count(*)::int from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock') as waiting`,
      [player.userId],
    );
    return rows[0].status === "SUSPENDED" && rows[0].waiting > 0;
  });
  killed.signal("SIGKILL");
  expect(await suspension).toBe("cut off");
  // PostgreSQL would still execute the dead gateway's statement once the row is free; this test needs an earlier crash.
  await t.db.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  );
  releaseLock();

  await until("the event has ended the player's session", async () => [401, 403].includes(await getSessions()));
  const repeated = await suspend(other.url);
  expect([repeated.status, repeated.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
}, 400_000);
