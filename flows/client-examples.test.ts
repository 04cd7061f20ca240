/** The examples of the client, as programs, against one running system. */
import { type ChildProcess, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createClient } from "@todoke/client";
import { type Browser, openBrowser, startControlledProvider } from "@todoke/identity/testing";
import { freePort, testDatabase, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiKeyFor, settingsFor, startAll } from "./all-services.ts";
import { startKillingProxy, type Trap } from "./killing-proxy.ts";

/** Of a back-end that uses two services. */
const arenaKey = "tdk_arena";
const parts = new AsyncDisposableStack();
let all: Awaited<ReturnType<typeof startAll>>;

beforeAll(async () => {
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const backchannelLogoutUri = `${origin}/login/backchannel-logout`;
  const provider = parts.use(await startControlledProvider({ origin, backchannelLogoutUri }));
  const settings = {
    GATEWAY_BFF_PORT: String(port),
    GATEWAY_BFF_ORIGIN: origin,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.client.clientId,
    OIDC_CLIENT_SECRET: provider.client.clientSecret,
    TODOKE_API_KEYS: `${settingsFor("").TODOKE_API_KEYS},arena=points:write+entitlements:write+read=${hash("sha256", arenaKey, "hex")}`,
  };
  all = parts.use(await startAll({ settings }));
});
afterAll(() => parts.disposeAsync());

const urlOf = (wanted: string): string => all.running.find(({ name }) => name === wanted)?.url ?? "";

function run(name: string, env: Record<string, string>, ...args: readonly string[]) {
  const program = fileURLToPath(new URL(`../examples/${name}/main.ts`, import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, ...env } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (output += text));
  const ended = once(child, "close").then(([code]) => ({ code, output }));
  /** Returns the rest of the line that begins with `text`. */
  async function untilPrinted(text: string): Promise<string> {
    const find = () =>
      output
        .split("\n")
        .find((line) => line.startsWith(text))
        ?.slice(text.length);
    await until(`${name} prints ${text}`, () => output.includes(`${text}`) || child.exitCode !== null);
    return find() ?? expect.fail(output);
  }
  return { child, ended, untilPrinted };
}

/** A player's browser: it goes where it is sent, and enters the password at the provider. */
async function logInAt(browser: Browser, url: string, name: string): Promise<void> {
  const provider = await browser.visit(url);
  const form = await browser.visit(provider.url);
  const back = await browser.visit(form.url, { username: name, password: `${name}-demo` });
  const { url: callback } = await browser.visit(back.url);
  expect(await (await fetch(callback)).text()).toContain("You are logged in");
}

test("the game: two players log in, meet, and have the news", async () => {
  const gateway = `http://localhost:${new URL(urlOf("gateway-bff")).port}`;
  const games = await Promise.all(
    ["alice", "bob"].map(async (name) => {
      const game = run("game", { TODOKE_GATEWAY: gateway });
      await logInAt(openBrowser(), await game.untilPrinted("Log in at "), name);
      return { game, userId: await game.untilPrinted("Logged in as ") };
    }),
  );
  const results = await Promise.all(games.map(({ game }) => game.ended));
  const matches = new Set<string>();
  for (const [index, { code, output }] of results.entries()) {
    const opponent = games[1 - index]?.userId;
    expect([code, output]).toEqual([0, expect.stringContaining(`with ${opponent}\n`)]);
    expect(output).toContain("News: ");
    matches.add(/Matched in (\S+)/.exec(output)?.[1] ?? "");
  }
  expect(matches.size).toBe(1);
});

test("the shop's back-end: a purchase that is reported again and again is granted once, also by another process", async () => {
  const env = { ENTITLEMENT_URL: urlOf("entitlement"), TODOKE_API_KEY: apiKeyFor("entitlements:write") };
  const purchase = JSON.stringify({ purchase_id: "p_shop", user_id: "u_shop", product: "sword" });
  async function report(port: string, body = purchase): Promise<[number, string]> {
    const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body });
    return [response.status, await response.text()];
  }
  const first = run("shop-back-end", env);
  const port = await first.untilPrinted("Listening on ");
  const reports = await Promise.all(Array.from({ length: 5 }, () => report(port)));
  expect(new Set(reports.map(String))).toEqual(new Set(["200,granted, version 1\n"]));
  first.child.kill("SIGKILL");
  await first.ended;

  const second = run("shop-back-end", env);
  const secondPort = await second.untilPrinted("Listening on ");
  expect(await report(secondPort)).toEqual([200, "granted, version 1\n"]);
  const [status, text] = await report(
    secondPort,
    JSON.stringify({ purchase_id: "p_2", user_id: "", product: "sword" }),
  );
  expect([status, text]).toEqual([422, expect.stringContaining("user_id")]);
  second.child.kill("SIGTERM");
  await second.ended;
  const { rows } = await all.db.query(
    `select count(*)::int as grants from entitlement.entitlement_audit where user_id = 'u_shop'`,
  );
  expect(rows).toEqual([{ grants: 1 }]);
});

test("the nightly job: run twice, it books each bonus once, and the points arrive", async () => {
  const env = { POINTS_URL: urlOf("points"), TODOKE_API_KEY: apiKeyFor("points:write") };
  const users = ["u_night1", "u_night2", "u_night3"];
  const at = "2026-01-16T00:00:00Z"; // It is past, so that the points are due at once.
  const first = await run("nightly-points", env, at, ...users.slice(0, 2)).ended;
  const again = await run("nightly-points", env, at, ...users).ended;
  expect([first, again]).toEqual([
    { code: 0, output: "2 reserved, 0 of them by an earlier run\n" },
    { code: 0, output: "3 reserved, 2 of them by an earlier run\n" },
  ]);
  await until(
    "the points are granted",
    async () => {
      const { rows } = await all.db.query(
        `select sum(balance)::int as points from points.point_root where user_id = any($1)`,
        [users],
      );
      return rows[0].points === 300;
    },
    { withinMs: 60_000 },
  );
});

/** The arena's shop, which reaches the services through a proxy that can kill it, and players with points. */
async function openArena() {
  const opened = new AsyncDisposableStack();
  const t = opened.use(await testDatabase({ sets: [] }));
  const proxy = opened.use(
    await startKillingProxy((path) => urlOf(path.startsWith("/v1/points") ? "points" : "entitlement")),
  );
  const gateway = urlOf("gateway-bff");
  const apiKey = apiKeyFor("points:write");
  const env = {
    DATABASE_URL: t.url,
    TODOKE_GATEWAY: gateway,
    POINTS_URL: proxy.url,
    ENTITLEMENT_URL: proxy.url,
    TODOKE_API_KEY: arenaKey,
  };

  async function startShop() {
    const shop = run("arena-shop", env);
    opened.defer(async () => {
      shop.child.kill("SIGKILL");
      await shop.ended;
    });
    const url = `http://127.0.0.1:${await shop.untilPrinted("Listening on ")}`;
    const kill = () => {
      shop.child.kill("SIGKILL");
      return shop.ended;
    };
    return { url, kill, ended: shop.ended, stop: () => shop.child.kill("SIGTERM") };
  }

  async function createPlayer(name: string) {
    const user = await all.createUser(`arena-${name}`);
    return { userId: user.userId, session: await all.openSession(user) };
  }
  type Player = Awaited<ReturnType<typeof createPlayer>>;

  async function post(url: string, { session }: Player, body?: object) {
    const headers = { authorization: `Bearer ${session}`, "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** What the services have of a player, and the states of the purchases. */
  async function read({ userId }: Player) {
    const { rows } = await all.db.query(
      `select (select balance::int from points.point_root where user_id = $1) as balance,
              (select held::int from points.point_root where user_id = $1) as held,
              (select count(*)::int from points.point_transactions where user_id = $1 and kind = 'CAPTURE') as payments,
              (select count(*)::int from entitlement.entitlement_audit where user_id = $1) as grants`,
      [userId],
    );
    const purchases = await t.db.query(`select state from arena_shop.purchases where user_id = $1`, [userId]);
    return { ...rows[0], states: purchases.rows.map(({ state }) => state) };
  }
  const untilState = (player: Player, state: string) =>
    until(`the purchase is ${state}`, async () => (await read(player)).states.includes(state));
  const add = (player: Player, point_amount: bigint) =>
    createClient({ services: { points: urlOf("points") }, apiKey }).points.add({
      user_id: player.userId,
      point_amount,
    });

  return {
    ...{ proxy, startShop, createPlayer, post, read, untilState, add },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const sword = { purchase_id: "p_1", item: "fire-sword" };
const steps = ["/holds", "/capture", "/grants"].flatMap((path) =>
  (["before", "after"] as const).map((when) => ({ path, when })),
);

test("the arena shop, killed before and after each of its calls: paid once, granted once", async () => {
  await using arena = await openArena();
  const bought = { balance: 700, held: 0, payments: 1, grants: 1, states: ["GRANTED"] };
  let shop = await arena.startShop();
  for (const { path, when } of steps) {
    const player = await arena.createPlayer(`${when}${path.replace("/", "-")}`);
    await arena.add(player, 1_000n);
    arena.proxy.killAt({ path, when, kill: shop.kill } satisfies Trap);
    await expect(arena.post(`${shop.url}/shop/purchases`, player, sword)).rejects.toThrow("fetch failed");
    expect((await arena.read(player)).states).not.toContain("GRANTED");

    shop = await arena.startShop(); // It continues without a further request.
    await arena.untilState(player, "GRANTED");
    expect([path, when, await arena.read(player)]).toEqual([path, when, bought]);
    // The dead shop's request arrives now, and the player sends the purchase again.
    expect(await arena.proxy.deliverDelayed()).toEqual(when === "before" ? [expect.toSatisfy((n) => n < 300)] : []);
    const again = await arena.post(`${shop.url}/shop/purchases`, player, sword);
    expect([again.status, again.body.state]).toEqual([200, "GRANTED"]);
    expect([path, when, await arena.read(player)]).toEqual([path, when, bought]);
  }
});

test("the arena shop: a delayed request cannot take points for a purchase that was refused", async () => {
  await using arena = await openArena();
  const player = await arena.createPlayer("poor");
  const first = await arena.startShop();
  arena.proxy.killAt({ path: "/holds", when: "before", kill: first.kill });
  await expect(arena.post(`${first.url}/shop/purchases`, player, sword)).rejects.toThrow("fetch failed");
  const shop = await arena.startShop();
  await arena.untilState(player, "REFUSED");

  await arena.add(player, 300n);
  expect(await arena.proxy.deliverDelayed()).toEqual([201]); // A hold that ends by itself.
  const again = await arena.post(`${shop.url}/shop/purchases`, player, sword);
  expect([again.status, again.body.state]).toEqual([402, "REFUSED"]);
  expect(await arena.read(player)).toMatchObject({ held: 300, payments: 0, grants: 0 });
});

test("the arena shop: a hold that has ended ends the purchase unpaid; a day later a payment still counts, and a hold does not", async () => {
  await using arena = await openArena();
  const [late, paid, held] = await Promise.all([
    arena.createPlayer("late"),
    arena.createPlayer("paid"),
    arena.createPlayer("held"),
  ]);
  for (const player of [late, paid, held]) await arena.add(player, 1_000n);
  let shop = await arena.startShop();
  arena.proxy.killAt({ path: "/capture", when: "before", kill: shop.kill });
  await expect(arena.post(`${shop.url}/shop/purchases`, late, sword)).rejects.toThrow("fetch failed");
  const { points } = createClient({ services: { points: urlOf("points") }, apiKey: arenaKey });
  const { rows } = await all.db.query(`select hold_id from points.point_holds where user_id = $1`, [late.userId]);
  await points.releaseHold({ hold_id: rows[0].hold_id });

  shop = await arena.startShop();
  await arena.untilState(late, "REFUSED");
  expect(await arena.proxy.deliverDelayed()).toEqual([409]);
  expect(await arena.read(late)).toEqual({ balance: 1_000, held: 0, payments: 0, grants: 0, states: ["REFUSED"] });

  arena.proxy.killAt({ path: "/capture", when: "after", kill: shop.kill });
  await expect(arena.post(`${shop.url}/shop/purchases`, paid, sword)).rejects.toThrow("fetch failed");
  await all.db.query(`delete from points.idempotency_keys`); // As retention does.
  shop = await arena.startShop();
  await arena.untilState(paid, "GRANTED");
  expect(await arena.read(paid)).toMatchObject({ balance: 700, held: 0, payments: 1, grants: 1 });

  arena.proxy.killAt({ path: "/holds", when: "after", kill: shop.kill });
  await expect(arena.post(`${shop.url}/shop/purchases`, held, sword)).rejects.toThrow("fetch failed");
  await all.db.query(`delete from points.idempotency_keys`);
  await arena.startShop();
  await arena.untilState(held, "REFUSED");
  expect(await arena.read(held)).toMatchObject({ held: 300, payments: 0, grants: 0 }); // The hold ends by itself.
});

test("the arena shop: two copies and many clicks buy an item once; the bonus comes once a day", async () => {
  await using arena = await openArena();
  const [one, two] = await Promise.all([arena.startShop(), arena.startShop()]);
  const player = await arena.createPlayer("rich");
  await arena.add(player, 1_000n);
  const urls = [one.url, two.url, one.url, two.url, one.url, two.url];
  const clicks = await Promise.all(urls.map((url) => arena.post(`${url}/shop/purchases`, player, sword)));
  expect(clicks.map(({ status, body }) => [status, body.state])).toEqual(clicks.map(() => [200, "GRANTED"]));
  const other = await arena.post(`${one.url}/shop/purchases`, player, { ...sword, purchase_id: "p_2" });
  expect(other.status).toBe(409);
  expect(await arena.read(player)).toEqual({ balance: 700, held: 0, payments: 1, grants: 1, states: ["GRANTED"] });

  const bonuses = await Promise.all(urls.map((url) => arena.post(`${url}/shop/bonus`, player)));
  expect(new Set(bonuses.map(({ body }) => body.balance))).toEqual(new Set(["800"]));
  for (const wrong of [{}, { ...sword, item: "toString" }, { ...sword, purchase_id: "a b" }])
    expect((await arena.post(`${one.url}/shop/purchases`, player, wrong)).status).toBe(422);
  expect((await arena.post(`${one.url}/shop/purchases`, { ...player, session: "tds_wrong" }, sword)).status).toBe(401);
  one.stop();
  expect(await one.ended).toMatchObject({ code: 0 });
});
