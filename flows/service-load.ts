/** A small load of every kind on all services: commands of back-ends, requests of players, and what follows from them. */
import { randomUUID } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { apiKeyFor, createUser, openSession } from "./all-services.ts";
import { createPlayerClient } from "./player-client.ts";

export interface ServiceUrls {
  readonly account: string;
  readonly entitlement: string;
  readonly points: string;
  readonly orders: string;
  readonly gateway: string;
}

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
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} responded ${response.status}: ${text}`);
}

/** Each call of the result sends one request of each kind for each of two players; it rejects if one fails. */
export async function createServiceLoad(urls: ServiceUrls, db: Db): Promise<() => Promise<void>> {
  const users = await Promise.all([1, 2].map(() => createUser(urls.account, randomUUID())));
  const players = await Promise.all(
    users.map(async (user) => ({
      userId: user.userId,
      ...createPlayerClient(urls.gateway, await openSession(db, user)),
    })),
  );

  async function act({ userId: user_id, call, join }: (typeof players)[number]): Promise<void> {
    const grant = { user_id, stock_keeping_unit: randomUUID(), reason: "purchase", purchase_id: randomUUID() };
    await send(`${urls.entitlement}/v1/entitlements/grants`, "entitlements:write", grant);
    await send(`${urls.points}/point/add`, "points:write", { user_id, point_amount: 1 });
    const due = { user_id, point_amount: 1, execute_at: "2026-01-15T10:00:00+09:00" };
    await send(`${urls.points}/point/reserve`, "points:write", due);
    const order = { instrument: "BTC-USD", side: "BUY", qty: "0.5", price: null, requested_at: "2026-01-31T09:30:00Z" };
    const names = { idempotency_key: randomUUID(), order_id: randomUUID() };
    await send(`${urls.orders}/do/order`, "orders:write", { ...names, ...order });
    const responses = [
      await join("duel"),
      await call("GET", "/me"),
      await call("GET", `/users/${user_id}/profile`),
      await call("GET", "/inbox"),
    ];
    const bad = responses.find(({ status }) => status >= 500);
    if (bad) throw new Error(`the gateway responded ${bad.status}: ${bad.text}`);
    // No login is under way: it is counted as one that was refused.
    await (await fetch(`${urls.gateway}/login/callback?code=none&state=none`, { redirect: "manual" })).text();
  }

  return async () => {
    await Promise.all(players.map(act));
    // An event of account.
    await createUser(urls.account, randomUUID());
  };
}
