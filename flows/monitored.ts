/** All services with a small load of every kind, for tools that look at their metrics (`npm run interop -- prometheus`). */
import { randomUUID } from "node:crypto";
import { apiKeyFor, startAll } from "./all-services.ts";
import { createPlayerClient } from "./player-client.ts";

export async function startMonitored() {
  const all = await startAll();
  const urlOf = (wanted: string) => all.running.find(({ name }) => name === wanted)?.url ?? "";
  const [gateway = ""] = all.gateways;
  const users = [await all.createUser("player-1"), await all.createUser("player-2")];
  const players = await Promise.all(
    users.map(async (user) => ({ userId: user.userId, ...createPlayerClient(gateway, await all.openSession(user)) })),
  );

  async function send(url: string, scope: string, body: object): Promise<void> {
    const key = "idempotency_key" in body ? String(body.idempotency_key) : randomUUID();
    const response = await fetch(url, {
      method: url.endsWith("/add") ? "PUT" : "POST",
      headers: {
        authorization: `Bearer ${apiKeyFor(scope)}`,
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${url} responded ${response.status}: ${await response.text()}`);
    await response.body?.cancel();
  }

  async function act({ userId: user_id, call, join }: (typeof players)[number]): Promise<void> {
    const grant = { user_id, stock_keeping_unit: randomUUID(), reason: "purchase", purchase_id: randomUUID() };
    await send(`${urlOf("entitlement")}/v1/entitlements/grants`, "entitlements:write", grant);
    await send(`${urlOf("points")}/point/add`, "points:write", { user_id, point_amount: 1 });
    const due = { user_id, point_amount: 1, execute_at: "2026-01-15T10:00:00+09:00" };
    await send(`${urlOf("points")}/point/reserve`, "points:write", due);
    const order = { instrument: "BTC-USD", side: "BUY", qty: "0.5", price: null, requested_at: "2026-01-31T09:30:00Z" };
    const names = { idempotency_key: randomUUID(), order_id: randomUUID() };
    await send(`${urlOf("orders")}/do/order`, "orders:write", { ...names, ...order });
    await join("duel");
    await call("GET", "/me");
    await call("GET", `/users/${user_id}/profile`);
    await call("GET", "/inbox");
    // No login is under way: it is counted as one that was refused.
    await fetch(`${gateway}/login/callback?code=none&state=none`, { redirect: "manual" });
  }

  return {
    opsUrls: all.running.map(({ opsUrl }) => opsUrl),
    async makeLoad(): Promise<void> {
      await Promise.all(players.map(act));
      // An event of account.
      await all.createUser(randomUUID());
    },
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}
