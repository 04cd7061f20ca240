import * as account from "@todoke/account";
import * as gateway from "@todoke/gateway-bff";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { makeUser, openSession, settingsFor } from "./all-services.ts";
import { serve } from "./serving.ts";

test("a gateway that is killed between account's answer and its own: the others hear of the suspension all the same", async () => {
  await using t = await testDatabase({ sets: [] });
  const env = { ...settingsFor(t.url), LOG_LEVEL: "info" };
  for (const { migrate } of [account, gateway]) await migrate(env, { dryRun: false });
  await using accounts = await serve("account", env);
  const reaching = { ...env, ACCOUNT_URL: accounts.url };
  await using doomed = await serve("gateway-bff", { ...reaching, GATEWAY_BFF_ROLES: "api" });
  await using other = await serve("gateway-bff", reaching);
  const [player, admin] = [await makeUser(accounts.url, "player"), await makeUser(accounts.url, "admin")];
  const [playing, acting] = [await openSession(t.db, player), await openSession(t.db, admin)];
  const suspend = (url: string) =>
    fetch(`${url}/v1/admin/users/${player.userId}:suspend`, {
      method: "POST",
      headers: { authorization: `Bearer ${acting}`, "idempotency-key": "once", "content-type": "application/json" },
      body: JSON.stringify({ reason: "cheating" }),
    });
  // Answered from what this gateway knows; for most else account would be asked, and would say so itself.
  const play = async () =>
    (await fetch(`${other.url}/v1/sessions`, { headers: { authorization: `Bearer ${playing}` } })).status;
  expect(await play()).toBe(200);

  // While somebody holds the row of what is known of the player, nobody can write it down.
  const holder = await t.open({ idleInTransactionTimeoutMs: 120_000 }).connect();
  let isHeld = true;
  /** With its connection, so that no failure leaves it behind. */
  const letGo = () => {
    if (isHeld) holder.release(true);
    isHeld = false;
  };
  using _ = { [Symbol.dispose]: letGo };
  await holder.query("begin");
  await holder.query(`select from gateway_bff.known_users where user_id = $1 for update`, [player.userId]);
  const unanswered = suspend(doomed.url).then(
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
  doomed.signal("SIGKILL");
  expect(await unanswered).toBe("cut off");
  // PostgreSQL would carry out what the dead one had asked for once the row is free: its crash has come a moment earlier.
  await t.db.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  );
  letGo();

  await until("the event has shut the player out", async () => [401, 403].includes(await play()));
  const again = await suspend(other.url);
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
}, 400_000);
