/** Shared reads: what the gateway gets for many users at once is what each user's own call returns. */
import { expect, test } from "vitest";
import { apiKeyFor, type ServiceName, startAll, tokenFor, type User } from "./all-services.ts";

/** The shared read of each service, and the route for one user. */
const reads = [
  ["account", "users", (id: string) => `/users/${id}`],
  ["entitlement", "entitlements", (id: string) => `/v1/users/${id}/entitlements`],
  ["points", "balances", (id: string) => `/v1/points/users/${id}/balance`],
  ["matchmaking", "current-tickets", () => "/v1/matchmaking/tickets/current"],
] as const;

const withoutTime = (body: string) => body.replace(/"as_of":"[^"]+"/g, '"as_of":""');

async function setup() {
  await using parts = new AsyncDisposableStack();
  const all = parts.use(await startAll());
  const urlOf = (wanted: ServiceName) => all.running.find(({ name }) => name === wanted)?.url ?? "";
  const users: User[] = [];
  for (let n = 0; n < 12; n++) users.push(await all.createUser(`player-${n}`));

  async function send(
    service: ServiceName,
    path: string,
    { user, key, body }: { user?: User; key?: string; body?: object },
  ) {
    const bearer = key === undefined ? await tokenFor(service, user) : apiKeyFor(key);
    const headers = { authorization: `Bearer ${bearer}`, "idempotency-key": crypto.randomUUID() };
    const post = { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${urlOf(service)}${path}`, {
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && post),
    });
    return { status: response.status, body: await response.text(), etag: response.headers.get("etag") ?? undefined };
  }

  const [first, second, third] = users as [User, User, User];
  const grant = (user: User, sku: string) => ({
    ...{ user_id: user.userId, stock_keeping_unit: sku, reason: "purchase", purchase_id: `p-${sku}` },
  });
  for (const sku of ["a", "b"])
    expect(
      (await send("entitlement", "/v1/entitlements/grants", { key: "entitlements:write", body: grant(first, sku) }))
        .status,
    ).toBe(201);
  // More than a shared read has: this user's own call has them.
  await all.db.query(
    `insert into entitlement.entitlements (user_id, stock_keeping_unit, status, source, source_id)
     select $1, 'item' || i, 'ACTIVE', 'purchase', 'p' from generate_series(1, 21) i`,
    [second.userId],
  );
  // Beyond what a JavaScript number can hold.
  const points = { user_id: first.userId, point_amount: 9_007_199_254_740_991 };
  for (const user of [first, first, third])
    expect(
      (await send("points", "/v1/points/additions", { key: "points:write", body: { ...points, user_id: user.userId } }))
        .status,
    ).toBeLessThan(300);
  const joined = await send("matchmaking", "/v1/matchmaking/queues/duel/tickets", { user: first, body: {} });
  expect(joined.status).toBeLessThan(300);
  const kept = parts.move();
  return { all, users, send, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

test("a shared read has the status, bytes and ETag of each user's own call, and only the gateway may make it", async () => {
  await using t = await setup();
  const unknown = { userId: "01a1df39-ea33-7000-ba4d-967d2e0fabc4", roles: [], version: 1 };
  const asked = [...t.users, unknown, t.users[0] as User];
  for (const [service, name, path] of reads) {
    const sharedPath = `/shared-reads/${name}?user_ids=${asked.map(({ userId }) => userId).join()}`;
    const { results } = JSON.parse((await t.send(service, sharedPath, {})).body) as {
      results: ({ status: number; body: string; etag?: string } | null)[];
    };
    const left: string[] = [];
    for (const [index, user] of asked.entries()) {
      const result = results[index];
      if (result === null) left.push(user.userId);
      else {
        const own = await t.send(service, path(user.userId), { user });
        expect({ ...result, body: withoutTime(result?.body ?? "") }).toEqual({ ...own, body: withoutTime(own.body) });
      }
    }
    const expected = { account: [unknown.userId], entitlement: [t.users[1]?.userId], points: [], matchmaking: [] };
    expect([service, left]).toEqual([service, expected[service]]);
    for (const caller of [{ user: t.users[0] as User }, { key: "read" }])
      expect((await t.send(service, sharedPath, caller)).status).toBe(403);
  }
});

test("of many profiles at once each user gets the own one", async () => {
  await using t = await setup();
  const sessions = await Promise.all(t.users.map(async (user) => ({ user, token: await t.all.openSession(user) })));
  const read = async (path: string, token: string) =>
    (await fetch(`${t.all.gateways[0]}${path}`, { headers: { authorization: `Bearer ${token}` } })).text();
  const profile = async (token: string) => withoutTime(await read("/v1/me/profile", token));
  const alone = [];
  for (const { token } of sessions) alone.push(await profile(token));
  for (let round = 0; round < 3; round++) {
    expect(await Promise.all(sessions.map(({ token }) => profile(token)))).toEqual(alone);
    const users = await Promise.all(sessions.map(async ({ token }) => JSON.parse(await read("/v1/me", token)).user_id));
    expect(users).toEqual(t.users.map(({ userId }) => userId));
  }
});
